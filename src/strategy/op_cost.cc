#include <shardprop/strategy/op_cost.h>

#include "base/saturating.h"

#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// The arithmetic of a product is that of its operands, not of its result.
MathClass math_class(const OpSchema& op) {
  DType widest = op.inputs.empty() ? DType::kF32 : op.inputs[0].dtype();
  for (const TensorMeta& meta : op.inputs) {
    if (is_floating(meta.dtype()) &&
        (!is_floating(widest) || item_size(meta.dtype()) > item_size(widest))) {
      widest = meta.dtype();
    }
  }
  switch (item_size(widest)) {
    case 8:
      return MathClass::kF64;
    case 4:
      return MathClass::kF32;
    case 2:
      return MathClass::kF16;
    default:
      return MathClass::kF8;
  }
}

std::uint32_t mask_of(const DimIndices& mesh_dims) {
  std::uint32_t mask = 0;
  for (const std::int32_t dim : mesh_dims) mask |= 1U << dim;
  return mask;
}

}  // namespace

std::vector<CollectiveStep> collectives_inside(const LocalContext& context,
                                               const Topology& topology) {
  std::vector<CollectiveStep> out;
  if (!needs_program(context)) return out;
  const MeshPlaces places(topology, context.mesh);
  for (const LocalStep& step : local_program(context).steps) {
    const auto* collective = std::get_if<LocalCollective>(&step);
    if (collective == nullptr) continue;
    const GroupPlace place = places.of_mask(mask_of(collective->mesh_dims));
    CollectiveStep made;
    made.kind = collective->kind;
    made.mesh_dims = collective->mesh_dims;
    made.reduce_op = collective->op;
    made.dtype = collective->dtype;
    made.message_bytes = collective->bytes;
    made.bytes_per_rank =
        collective_bytes_per_rank(made.kind, place.ranks, made.message_bytes);
    made.nanoseconds =
        collective_nanoseconds(topology, made.kind, place, made.message_bytes);
    out.push_back(std::move(made));
  }
  return out;
}

std::int64_t compute_nanoseconds(const LocalContext& context,
                                 const Topology& topology) {
  if (context.space.is_free) return 0;
  double bytes = 0;
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) {
    bytes += static_cast<double>(
        context.max_local_input_elements(static_cast<int>(i)) *
        item_size(context.op.inputs[i].dtype()));
  }
  for (std::size_t o = 0; o < context.op.outputs.size(); ++o) {
    bytes += static_cast<double>(
        context.max_local_output_elements(static_cast<int>(o)) *
        item_size(context.op.outputs[o].dtype()));
  }
  const double flops =
      context.space.flops_per_point > 0
          ? context.space.flops_per_point * max_local_points(context)
          : 0;
  const std::int64_t once =
      compute_nanoseconds(topology, math_class(context.op), flops, bytes);
  if (!needs_program(context)) return once;
  // A program of several kernels pays each one's launch.
  std::int64_t kernels = 0;
  for (const LocalStep& step : local_program(context).steps) {
    kernels += std::holds_alternative<LocalOp>(step) ? 1 : 0;
  }
  return std::max(once, whole_nanoseconds(static_cast<double>(kernels) *
                                          topology.launch_us.value * 1000));
}

}  // namespace shardprop
