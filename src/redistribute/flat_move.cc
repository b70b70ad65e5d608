#include "redistribute/flat_move.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>

namespace shardprop {
namespace {

// Returns whether the step adds up the terms of its ranks, without a factor.
bool is_sum(const RedistributeStep& step) {
  return step.reduce_op == ReduceOp::kSum &&
         std::all_of(step.mesh_dims.begin(), step.mesh_dims.end(),
                     [&](std::int32_t mesh_dim) {
                       const Placement term = step.src[mesh_dim];
                       return term.is_partial() &&
                              term.reduce_op() == ReduceOp::kSum;
                     });
}

bool is_flat_kind(const RedistributeStep& step) {
  switch (step.kind) {
    case CollectiveKind::kAllGather:
      return true;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce:
      return is_sum(step);
    default:
      return false;
  }
}

bool are_flat_kinds(std::span<const RedistributeStep> steps) {
  if (steps.size() == 1) return is_flat_kind(steps[0]);
  return steps.size() == 2 && steps[0].kind == CollectiveKind::kReduceScatter &&
         steps[1].kind == CollectiveKind::kAllReduce &&
         steps[0].dtype == steps[1].dtype && is_flat_kind(steps[0]) &&
         is_flat_kind(steps[1]);
}

// Returns whether all ranks have equal parts, in default order.
bool is_even(const Layout& layout, const DeviceMesh& mesh,
             const TensorMeta& meta) {
  if (layout.has_strided() || !layout.has_default_order()) return false;
  for (int d = 0; d < meta.rank(); ++d) {
    std::int64_t parts = 1;
    for (const int mesh_dim : layout.cuts(d)) parts *= mesh.size(mesh_dim);
    if (meta.size(d) % parts != 0) return false;
  }
  return true;
}

// Returns the tensor dim that exactly these mesh dims shard.
std::optional<int> dim_of_shards(const Layout& layout, const DeviceMesh& mesh,
                                 const DimIndices& mesh_dims) {
  const Placement first = layout[mesh_dims[0]];
  if (first.kind() != Placement::Kind::kShard) return std::nullopt;
  DimIndices cuts;
  for (const int mesh_dim : layout.cuts(first.dim())) {
    if (mesh.size(mesh_dim) > 1) cuts.push_back(mesh_dim);
  }
  if (cuts != mesh_dims) return std::nullopt;
  return first.dim();
}

}  // namespace

std::optional<FlatMove> flat_move(const DeviceMesh& mesh,
                                  const TensorMeta& meta,
                                  std::span<const RedistributeStep> steps) {
  if (!are_flat_kinds(steps)) return std::nullopt;
  const RedistributeStep& first = steps.front();
  const Layout& last = steps.back().dst;
  if (first.mesh_dims.empty() || !is_even(first.src, mesh, meta) ||
      !is_even(first.dst, mesh, meta) || !is_even(last, mesh, meta)) {
    return std::nullopt;
  }
  FlatMove move;
  if (first.kind != CollectiveKind::kAllReduce) {
    const bool gathers = first.kind == CollectiveKind::kAllGather;
    move.tensor_dim =
        dim_of_shards(gathers ? first.src : first.dst, mesh, first.mesh_dims);
    if (!move.tensor_dim) return std::nullopt;
  }
  for (const int mesh_dim : first.mesh_dims) move.ranks *= mesh.size(mesh_dim);
  move.source = max_local_shape(first.src, mesh, meta.shape());
  move.result = max_local_shape(last, mesh, meta.shape());
  return move;
}

bool share_buffer(const CollectiveStep& a, const CollectiveStep& b) {
  return a.kind == b.kind && a.mesh_dims == b.mesh_dims &&
         a.reduce_op == b.reduce_op && a.dtype == b.dtype;
}

}  // namespace shardprop
