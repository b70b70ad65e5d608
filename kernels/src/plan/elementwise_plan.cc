#include "elementwise_plan.h"

#include <algorithm>
#include <string_view>

#include "message.h"
#include "overlap.h"

namespace shardprop::kernels {
namespace {

constexpr const char* kCopy = "strided_copy";
constexpr const char* kFill = "fill";
constexpr const char* kReduce = "reduce_into";

constexpr std::string_view kOpNames[kReduceOpCount] = {
    "sum", "product", "min", "max", "bitwise and", "bitwise or", "bitwise xor"};

bool has_op(DType dtype, ReduceOp op) {
  const bool floating = is_castable(dtype) || dtype == DType::kFloat64;
  if (floating) return op <= ReduceOp::kMax;
  return dtype != DType::kComplex64 && dtype != DType::kComplex128;
}

bool same_memory(const Operand& a, const Operand& b) {
  if (a.data != b.data || a.dtype != b.dtype) return false;
  for (int d = 0; d < a.rank; ++d) {
    if (a.sizes[d] > 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

// True if dim d runs on from dim `outer` in every operand.
bool mergeable(const ReducePlan& plan, int outer, int d) {
  return std::all_of(
      plan.operands.begin(), plan.operands.end(), [&](const Operand& operand) {
        return operand.strides[outer] == operand.strides[d] * plan.sizes[d];
      });
}

void move_dim(ReducePlan* plan, int from, int to) {
  plan->sizes[to] = plan->sizes[from];
  for (Operand& operand : plan->operands) {
    operand.strides[to] = operand.strides[from];
  }
}

// Simplifies like the function in box.h, but for any number of operands.
void simplify(ReducePlan* plan) {
  int kept = 0;
  for (int d = 0; d < plan->rank; ++d) {
    if (plan->sizes[d] == 1) continue;
    move_dim(plan, d, kept++);
  }
  std::array<int, kMaxDims> order;
  for (int d = 0; d < kept; ++d) order[d] = d;
  const Operand& out = plan->operands[0];
  std::stable_sort(order.begin(), order.begin() + kept, [&](int a, int b) {
    return std::abs(out.strides[a]) > std::abs(out.strides[b]);
  });
  ReducePlan sorted = *plan;
  for (int d = 0; d < kept; ++d) {
    sorted.sizes[d] = plan->sizes[order[d]];
    for (std::size_t i = 0; i < plan->operands.size(); ++i) {
      sorted.operands[i].strides[d] = plan->operands[i].strides[order[d]];
    }
  }
  sorted.rank = 0;
  for (int d = 0; d < kept; ++d) {
    if (sorted.rank > 0 && mergeable(sorted, sorted.rank - 1, d)) {
      const std::int64_t outer = sorted.sizes[sorted.rank - 1];
      move_dim(&sorted, d, sorted.rank - 1);
      sorted.sizes[sorted.rank - 1] *= outer;
    } else {
      move_dim(&sorted, d, sorted.rank++);
    }
  }
  if (sorted.rank == 0) {
    sorted.rank = 1;
    sorted.sizes[0] = 1;
    for (Operand& operand : sorted.operands) {
      operand.strides[0] = operand.item_size();
    }
  }
  *plan = std::move(sorted);
}

}  // namespace

Status plan_strided_copy(const StridedCopyArgs& args, BoxList* boxes) {
  Operand in;
  Operand out;
  Status status = make_operand(kCopy, {"in"}, args.in, &in);
  if (!status.ok()) return status;
  status = make_operand(kCopy, {"out"}, args.out, &out);
  if (!status.ok()) return status;
  if (!std::ranges::equal(in.shape(), out.shape())) {
    return invalid(kCopy, "in has sizes ", in.shape(), ", out has ",
                   out.shape());
  }
  status = check_cast(kCopy, in.dtype, out.dtype, args.scale);
  if (!status.ok()) return status;
  status =
      check_overlap(kCopy, {"out", false, {&out, 1}}, {"in", false, {&in, 1}});
  if (!status.ok() || out.count() == 0) return status;
  append_copy_box(out, in.data, in.strides, boxes);
  return {};
}

Status plan_fill(const FillArgs& args, BoxList* boxes) {
  Operand out;
  Status status = make_operand(kFill, {"out"}, args.out, &out);
  if (!status.ok()) return status;
  if (args.value == nullptr) return invalid(kFill, "value is null");
  status = check_overlap(kFill, {"out", false, {&out, 1}}, {"in", false, {}});
  if (!status.ok() || out.count() == 0) return status;
  append_copy_box(out, nullptr, {}, boxes);
  return {};
}

std::int64_t ReducePlan::count() const {
  std::int64_t product = 1;
  for (int d = 0; d < rank; ++d) product *= sizes[d];
  return product;
}

Status plan_reduce_into(const ReduceIntoArgs& args, ReducePlan* plan) {
  const auto op = static_cast<std::int32_t>(args.op);
  if (op < 0 || op >= kReduceOpCount) {
    return invalid(kReduce, "op number ", op, " names no reduction");
  }
  if (args.inputs.empty())
    return invalid(kReduce, "the list of inputs is empty");
  plan->operands.resize(args.inputs.size() + 1);
  Operand& out = plan->operands[0];
  Status status = make_operand(kReduce, {"out"}, args.out, &out);
  if (!status.ok()) return status;
  const DType dtype = args.inputs[0].dtype;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    Operand& input = plan->operands[i + 1];
    status = make_operand(kReduce, {"inputs", static_cast<std::int64_t>(i)},
                          args.inputs[i], &input);
    if (!status.ok()) return status;
    if (input.dtype != dtype) {
      return invalid(kReduce, "inputs[", i, "] is ", to_string(input.dtype),
                     ", inputs[0] is ", to_string(dtype));
    }
    if (!std::ranges::equal(input.shape(), out.shape())) {
      return invalid(kReduce, "inputs[", i, "] has sizes ", input.shape(),
                     ", out has ", out.shape());
    }
  }
  if (!has_op(dtype, args.op)) {
    return invalid(kReduce, to_string(dtype), " has no ", kOpNames[op]);
  }
  status = check_cast(kReduce, dtype, out.dtype, args.scale);
  if (!status.ok()) return status;
  if (overlaps_itself(out)) {
    return {StatusCode::kOverlap, message(kReduce, ": out overlaps itself")};
  }
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const Operand& input = plan->operands[i + 1];
    if (!same_memory(out, input) && overlap(out, input)) {
      return {StatusCode::kOverlap,
              message(kReduce, ": out overlaps inputs[", i, "]")};
    }
  }
  plan->rank = out.rank;
  plan->sizes = out.sizes;
  if (plan->count() > 0) simplify(plan);
  return {};
}

}  // namespace shardprop::kernels
