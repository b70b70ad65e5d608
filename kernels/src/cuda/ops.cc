#include <shardprop/kernels/cuda.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "../plan/elementwise_plan.h"
#include "../plan/message.h"
#include "../plan/pack_plan.h"
#include "batches.h"
#include "launch.h"

namespace shardprop::kernels::cuda {
namespace {

constexpr const char* kReduce = "reduce_into";

ReduceOp op_on_bytes(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
      return ReduceOp::kBitwiseOr;
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
      return ReduceOp::kBitwiseAnd;
    default:
      return op;
  }
}

bool aligned(const Operand& operand, std::int64_t bytes) {
  return reinterpret_cast<std::intptr_t>(operand.data) % bytes == 0;
}

}  // namespace

Status chunk_cat(const ChunkCatArgs& args, const CudaOptions& options) {
  PackPlan plan;
  if (Status status = plan_chunk_cat(args, &plan); !status.ok()) return status;
  Batches batches("chunk_cat", {.from = args.tensors[0].dtype,
                                .to = args.out.dtype,
                                .scale = args.scale});
  batches.add_pack(plan);
  return batches.launch(options.stream);
}

Status split_with_sizes_copy(const SplitWithSizesCopyArgs& args,
                             const CudaOptions& options) {
  if (args.outs.empty()) {
    BoxList none;
    return plan_split(args, &none);
  }
  Batches batches(
      "split_with_sizes_copy",
      {.from = args.in.dtype, .to = args.outs[0].dtype, .scale = args.scale});
  if (args.shard_dims.empty()) {
    BoxList boxes;
    if (Status status = plan_split(args, &boxes); !status.ok()) return status;
    for (std::size_t i = 0; i < boxes.size(); ++i) batches.add_part(boxes[i]);
  } else {
    PackPlan plan;
    if (Status status = plan_sharded_split(args, &plan); !status.ok()) {
      return status;
    }
    batches.add_unpack(plan);
  }
  return batches.launch(options.stream);
}

Status strided_copy(const StridedCopyArgs& args, const CudaOptions& options) {
  BoxList boxes;
  if (Status status = plan_strided_copy(args, &boxes); !status.ok()) {
    return status;
  }
  Batches batches(
      "strided_copy",
      {.from = args.in.dtype, .to = args.out.dtype, .scale = args.scale});
  for (std::size_t i = 0; i < boxes.size(); ++i) batches.add_box(boxes[i]);
  return batches.launch(options.stream);
}

Status fill(const FillArgs& args, const CudaOptions& options) {
  BoxList boxes;
  if (Status status = plan_fill(args, &boxes); !status.ok()) return status;
  Batches batches(
      "fill",
      {.from = args.out.dtype, .to = args.out.dtype, .fill = args.value});
  for (std::size_t i = 0; i < boxes.size(); ++i) batches.add_box(boxes[i]);
  return batches.launch(options.stream);
}

Status reduce_into(const ReduceIntoArgs& args, const CudaOptions& options) {
  ReducePlan plan;
  if (Status status = plan_reduce_into(args, &plan); !status.ok()) {
    return status;
  }
  if (plan.count() == 0) return {};
  DType from = plan.operands[1].dtype;
  DType to = plan.operands[0].dtype;
  ReduceParams params;
  params.op = static_cast<std::int32_t>(args.op);
  if (from == DType::kBool) {
    from = to = DType::kUInt8;
    params.op = static_cast<std::int32_t>(op_on_bytes(args.op));
  }
  params.inputs = static_cast<std::uint32_t>(args.inputs.size());
  params.rank = static_cast<std::uint32_t>(plan.rank);
  params.count = plan.count();
  params.scale = args.scale;
  std::copy_n(plan.sizes.begin(), plan.rank, params.sizes);
  bool dense = plan.rank == 1;
  bool loose = false;
  for (const Operand& operand : plan.operands) {
    dense = dense && operand.strides[0] == operand.item_size() &&
            aligned(operand, 16);
    loose = loose || !aligned(operand, operand.item_size());
  }
  params.dense = dense ? 1 : 0;
  params.loose = loose ? 1 : 0;
  const std::size_t words = dense ? 1 : 1 + static_cast<std::size_t>(plan.rank);
  if (plan.operands.size() * words > ReduceParams::kWords) {
    return {StatusCode::kUnsupported,
            message(kReduce, ": ", args.inputs.size(),
                    " inputs do not fit in one launch, at most ",
                    ReduceParams::kWords / words - 1, " of these strides")};
  }
  std::size_t at = 0;
  for (const Operand& operand : plan.operands) {
    params.words[at++] = reinterpret_cast<std::int64_t>(operand.data);
    for (std::size_t d = 1; d < words; ++d) {
      params.words[at++] = operand.strides[d - 1];
    }
  }
  const std::int64_t vector =
      dense ? 16 / std::max(size_of(from), size_of(to)) : 1;
  const auto items =
      static_cast<std::uint64_t>((params.count + vector - 1) / vector);
  params.tiles = (items + kThreads - 1) / kThreads;
  const LaunchError error = launch_reduce(from, to, params, options.stream);
  if (error != 0) {
    return {StatusCode::kCuda, message(kReduce, ": ", describe(error))};
  }
  return {};
}

}  // namespace shardprop::kernels::cuda
