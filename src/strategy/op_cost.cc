#include <shardprop/strategy/op_cost.h>

#include "base/index.h"
#include "base/saturating.h"
#include "strategy/factor_shards.h"
#include "strategy/product_work.h"
#include "strategy/program_kernels.h"

#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

std::uint32_t mask_of(const DimIndices& mesh_dims) {
  std::uint32_t mask = 0;
  for (const std::int32_t dim : mesh_dims) mask |= 1U << dim;
  return mask;
}

// An all_reduce sends equal parts: the value is padded to a multiple of the
// number of ranks.
std::int64_t sent_bytes(const LocalCollective& collective, std::int64_t ranks) {
  if (collective.kind != CollectiveKind::kAllReduce) return collective.bytes;
  const std::int64_t part = ranks * item_size(collective.dtype);
  return (collective.bytes + part - 1) / part * part;
}

}  // namespace

std::vector<CollectiveStep> collectives_inside(const LocalContext& context,
                                               const Topology& topology) {
  if (!needs_program(context)) return {};
  return collectives_inside(local_program(context), context.mesh, topology);
}

std::vector<CollectiveStep> collectives_inside(const LocalProgram& program,
                                               const DeviceMesh& mesh,
                                               const Topology& topology) {
  std::vector<CollectiveStep> out;
  const MeshPlaces places(topology, mesh);
  for (const LocalStep& step : program.steps) {
    const auto* collective = std::get_if<LocalCollective>(&step);
    if (collective == nullptr) continue;
    const GroupPlace place = places.of_mask(mask_of(collective->mesh_dims));
    CollectiveStep made;
    made.kind = collective->kind;
    made.mesh_dims = collective->mesh_dims;
    made.reduce_op = collective->op;
    made.dtype = collective->dtype;
    made.message_bytes = sent_bytes(*collective, place.ranks);
    made.bytes_per_rank =
        collective_bytes_per_rank(made.kind, place.ranks, made.message_bytes);
    made.nanoseconds =
        collective_nanoseconds(topology, made.kind, place, made.message_bytes);
    out.push_back(std::move(made));
  }
  return out;
}

namespace {

double input_bytes(const LocalContext& context, std::size_t i) {
  return static_cast<double>(
      context.max_local_input_elements(static_cast<int>(i)) *
      item_size(context.op.inputs[i].dtype()));
}

double output_bytes(const LocalContext& context, std::size_t o) {
  return static_cast<double>(
      context.max_local_output_elements(static_cast<int>(o)) *
      item_size(context.op.outputs[o].dtype()));
}

// Returns the bytes that the operator reads of an input. From a lookup table,
// it reads one element for each point of the other factors. A normalising
// operator reads the full input.
double read_bytes(const LocalContext& context, std::size_t i) {
  const IndexSpace& space = context.space;
  const double all = input_bytes(context, i);
  if (space.outputs.empty() || space.normalises) return all;
  const Operand& input = space.inputs[i];
  bool looked_up = false;
  double found = static_cast<double>(item_size(context.op.inputs[i].dtype()));
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const auto factor = static_cast<int>(f);
    if (space.factors[f].kind == FactorKind::kIndexed && input.holds(factor) &&
        !space.outputs[0].holds(factor)) {
      looked_up = true;
      continue;
    }
    found *= static_cast<double>(factor_shards(context, factor).largest);
  }
  return looked_up ? std::min(all, found) : all;
}

// Returns the bytes of an in-place write. The operator reads the other inputs,
// and writes as many elements as the largest of them has.
double overwritten_bytes(const LocalContext& context) {
  const auto into = index(context.space.writes_into);
  const auto item =
      static_cast<double>(item_size(context.op.inputs[into].dtype()));
  double bytes = 0;
  double written = 0;
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) {
    if (i == into) continue;
    bytes += input_bytes(context, i);
    written = std::max(
        written, static_cast<double>(
                     context.max_local_input_elements(static_cast<int>(i))));
  }
  return bytes + written * item;
}

double touched_bytes(const LocalContext& context, InputStorage storage) {
  double bytes = 0;
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) {
    bytes += read_bytes(context, i);
  }
  for (std::size_t o = 0; o < context.op.outputs.size(); ++o) {
    bytes += output_bytes(context, o);
  }
  if (context.space.writes_into == IndexSpace::kNothing ||
      storage == InputStorage::kKept) {
    return bytes;
  }
  return std::min(bytes, overwritten_bytes(context));
}

}  // namespace

std::int64_t compute_nanoseconds(const LocalContext& context,
                                 const Topology& topology, InputStorage storage,
                                 StepFusion fusion) {
  if (context.space.is_free) return 0;
  const ProductCost products = product_work(context, topology);
  const std::int64_t once = compute_nanoseconds(
      topology, math_class(context.op, context.space.product), products.flops,
      touched_bytes(context, storage) + products.bytes);
  if (!needs_program(context)) return once;
  // The program does not read or multiply less than the operator does in one
  // kernel.
  return std::max(
      once, kernels_nanoseconds(topology, program_kernels(context, fusion)));
}

std::int64_t compute_nanoseconds(const LocalContext& context,
                                 const Topology& topology,
                                 InputStorage storage) {
  return compute_nanoseconds(context, topology, storage, StepFusion::kEachStep);
}

std::int64_t traffic_nanoseconds(const Topology& topology, double bytes) {
  return to_nanoseconds(bytes / topology.memory_rate());
}

std::int64_t launch_nanoseconds(const Topology& topology) {
  return whole_nanoseconds(topology.launch_us.value * 1000);
}

std::int64_t ramp_nanoseconds(const Topology& topology) {
  return whole_nanoseconds(topology.ramp_us.value * 1000);
}

std::int64_t compute_nanoseconds(const LocalContext& context,
                                 const Topology& topology,
                                 const KernelPart& part) {
  if (context.space.is_free) return 0;
  if (needs_program(context)) {
    return compute_nanoseconds(context, topology, InputStorage::kTakenOver,
                               StepFusion::kBetweenCollectives);
  }
  double bytes = 0;
  for (std::size_t i = 0; i < part.reads.size(); ++i) {
    bytes += part.reads[i] * read_bytes(context, i);
  }
  for (std::size_t o = 0; o < part.writes.size(); ++o) {
    if (part.writes[o]) bytes += output_bytes(context, o);
  }
  const std::int64_t launch = part.launches ? launch_nanoseconds(topology) : 0;
  return sat_add(launch, traffic_nanoseconds(topology, bytes));
}

}  // namespace shardprop
