#include <shardprop/kernels/cpu.h>

#include <algorithm>

#include "../plan/elementwise_plan.h"
#include "call_size.h"
#include "move_elements.h"
#include "rows.h"

namespace shardprop::kernels::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements; all buffers stay in L1
constexpr std::int64_t kWidest = 8;    // bytes of the widest type reduced

// Reduces block by block: gathers strided inputs, accumulates input by input,
// rounds once, and scatters if the output is strided. A block is read
// completely before it is written, so the output may be one of the inputs.
class Reducer {
 public:
  Reducer(const ReducePlan& plan, ReduceOp op, double scale)
      : plan_(plan),
        rows_(row_kernels()),
        scale_(scale),
        from_(plan.operands[1].dtype),
        to_(plan.operands[0].dtype),
        accumulator_(is_castable(from_) ? DType::kFloat32 : from_),
        accumulate_(
            rows_.accumulate[static_cast<int>(op)][static_cast<int>(from_)]) {
    run_ = plan.sizes[plan.rank - 1];
    pieces_ = (run_ + kBlock - 1) / kBlock;
    items_ = pieces_;
    for (int d = 0; d < plan.rank - 1; ++d) items_ *= plan.sizes[d];
    const std::int64_t bytes =
        plan.count() *
        (size_of(to_) +
         size_of(from_) * static_cast<std::int64_t>(plan.operands.size() - 1));
    bytes_ = bytes;
    stream_ = exceeds_caches(bytes);
  }

  void run(ThreadPool* pool) {
    tasks_ = std::min(task_count(bytes_, pool), items_);
    if (tasks_ <= 1) {
      run_items(0, items_);
      return;
    }
    pool->run(
        tasks_,
        [](void* self, std::int64_t task) {
          const auto* reducer = static_cast<const Reducer*>(self);
          const auto start = [reducer](std::int64_t t) {
            return reducer->items_ / reducer->tasks_ * t +
                   std::min(t, reducer->items_ % reducer->tasks_);
          };
          reducer->run_items(start(task), start(task + 1));
        },
        this);
  }

 private:
  void run_items(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t item = begin; item < end; ++item) run_block(item);
    if (stream_) finish_stores();
  }

  static std::byte* address(const Operand& operand, const ReducePlan& plan,
                            std::int64_t outer, std::int64_t first) {
    std::byte* at = operand.data + first * operand.strides[plan.rank - 1];
    for (int d = plan.rank - 2; d >= 0; --d) {
      at += outer % plan.sizes[d] * operand.strides[d];
      outer /= plan.sizes[d];
    }
    return at;
  }

  void run_block(std::int64_t item) const {
    const std::int64_t outer = item / pieces_;
    const std::int64_t first = item % pieces_ * kBlock;
    const std::int64_t count = std::min(kBlock, run_ - first);
    alignas(64) std::byte sums[kBlock * kWidest];
    alignas(64) std::byte gathered[kBlock * kWidest];
    for (std::size_t i = 1; i < plan_.operands.size(); ++i) {
      const Operand& input = plan_.operands[i];
      const std::byte* src = address(input, plan_, outer, first);
      const std::int64_t stride = input.strides[plan_.rank - 1];
      if (stride != size_of(from_)) {
        move_elements(gathered, size_of(from_), src, stride, size_of(from_),
                      count);
        src = gathered;
      }
      if (i > 1) {
        accumulate_(sums, src, count);
      } else {
        convert(sums, accumulator_, src, from_, count, 1.0, false);
      }
    }
    const Operand& out = plan_.operands[0];
    std::byte* dst = address(out, plan_, outer, first);
    const std::int64_t stride = out.strides[plan_.rank - 1];
    const bool dense = stride == size_of(to_);
    convert(dense ? dst : gathered, to_, sums, accumulator_, count, scale_,
            dense && stream_);
    if (!dense)
      move_elements(dst, stride, gathered, size_of(to_), size_of(to_), count);
  }

  void convert(std::byte* dst, DType to, const std::byte* src, DType from,
               std::int64_t count, double scale, bool stream) const {
    Panel panel{dst, src, 0, 0, 1, count};
    if (from == to && scale == 1.0) {
      panel.width *= size_of(to);
      rows_.copy(panel, stream);
    } else if (from == DType::kFloat64) {
      rows_.scale_f64(panel, scale);
    } else {
      rows_.cast[static_cast<int>(from)][static_cast<int>(to)](
          panel, static_cast<float>(scale), stream);
    }
  }

  const ReducePlan& plan_;
  const RowKernels& rows_;
  const double scale_;
  const DType from_;
  const DType to_;
  const DType accumulator_;
  const RowKernels::Accumulate accumulate_;
  std::int64_t run_ = 0;     // elements of the innermost dim
  std::int64_t pieces_ = 0;  // blocks of it
  std::int64_t items_ = 0;   // blocks in all
  std::int64_t bytes_ = 0;   // read and written
  std::int64_t tasks_ = 1;
  bool stream_ = false;
};

}  // namespace

Status reduce_into(const ReduceIntoArgs& args, const CpuOptions& options) {
  ReducePlan plan;
  if (Status status = plan_reduce_into(args, &plan); !status.ok()) {
    return status;
  }
  if (plan.count() > 0) {
    Reducer(plan, args.op, args.scale).run(options.pool);
  }
  return {};
}

}  // namespace shardprop::kernels::cpu
