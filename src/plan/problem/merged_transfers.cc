#include "plan/problem/merged_transfers.h"

#include "base/index.h"
#include "redistribute/exchange_bytes.h"

#include <shardprop/base/error.h>
#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using Ties = MergedTransfers::Ties;

bool tied(Ties ties, int mesh_dim) { return (ties >> mesh_dim & 1U) != 0; }

// Returns the merged mesh dim of each mesh dim.
std::vector<int> groups_of(int mesh_ndim, Ties ties) {
  std::vector<int> group;
  for (int i = 0; i < mesh_ndim; ++i) {
    group.push_back(i == 0 ? 0 : group.back() + (tied(ties, i) ? 0 : 1));
  }
  return group;
}

Layout created(Placements placements, ShardOrder order) {
  auto layout = Layout::create(std::move(placements), std::move(order));
  if (!layout) throw InternalError("merged mesh dims do not make a layout");
  return *std::move(layout);
}

Layout unmerged_layout(const Layout& layout, const std::vector<int>& group,
                       const DeviceMesh& mesh, const TensorMeta& meta) {
  Placements placements;
  ShardOrder order;
  for (const int g : group) {
    placements.push_back(layout[g]);
    order.push_back(0);
  }
  for (int d = 0; d < meta.rank(); ++d) {
    std::int8_t place = 0;
    for (const std::int32_t g : layout.cuts(d)) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        if (group[i] == g) order[i] = place++;
      }
    }
  }
  return canonical(created(std::move(placements), std::move(order)), mesh,
                   meta.shape());
}

DeviceMesh merged_mesh(const DeviceMesh& mesh, Ties ties) {
  DeviceMesh out = mesh;
  // Merges from the last dim on, so that the indices of the dims before it
  // stay.
  for (int i = mesh.ndim() - 1; i > 0; --i) {
    if (!tied(ties, i)) continue;
    const std::int32_t dims[] = {i - 1, i};
    std::string name = out.name(i - 1) + "_" + out.name(i);
    while (out.find_dim(name)) name += '_';
    auto merged = out.flatten(dims, std::move(name));
    if (!merged) throw InternalError("neighbouring mesh dims do not merge");
    out = *std::move(merged);
  }
  return out;
}

}  // namespace

Ties MergedTransfers::uniform(const Layout& layout) {
  Ties ties = 0;
  if (layout.has_strided()) return ties;
  for (int i = 1; i < layout.mesh_ndim(); ++i) {
    const auto at = index(i);
    const bool follows =
        !layout[i].is_shard() ||
        layout.shard_order()[at] == layout.shard_order()[at - 1] + 1;
    if (layout[i] == layout[i - 1] && follows) ties |= Ties{1} << i;
  }
  return ties;
}

Layout MergedTransfers::merged(const Layout& layout, Ties ties) {
  const std::vector<int> group = groups_of(layout.mesh_ndim(), ties);
  Placements placements;
  ShardOrder order;
  for (int i = 0; i < layout.mesh_ndim(); ++i) {
    if (tied(ties, i)) continue;
    placements.push_back(layout[i]);
    order.push_back(0);
  }
  for (int d = 0; d < layout.min_tensor_rank(); ++d) {
    std::int8_t place = 0;
    for (const std::int32_t i : layout.cuts(d)) {
      if (tied(ties, i)) continue;
      order[index(group[index(i)])] = place++;
    }
  }
  return created(std::move(placements), std::move(order));
}

const RedistributePlanner& MergedTransfers::planner(const DeviceMesh& mesh,
                                                    Ties ties) {
  const auto known = planners_.find(ties);
  if (known != planners_.end()) return known->second;
  auto produced =
      RedistributePlanner::create(merged_mesh(mesh, ties), topology_, options_);
  if (!produced) {
    if (produced.error().code == ErrorCode::kOutOfMemory) {
      throw std::bad_alloc();
    }
    throw InternalError(produced.error().message);
  }
  return planners_.emplace(ties, *std::move(produced)).first->second;
}

RedistributePlan MergedTransfers::unmerged(RedistributePlan plan, Ties ties,
                                           const DeviceMesh& mesh,
                                           const TensorMeta& meta) {
  if (ties == 0) return plan;
  const std::vector<int> group = groups_of(mesh.ndim(), ties);
  for (RedistributeStep& step : plan.steps) {
    DimIndices over;
    for (int i = 0; i < mesh.ndim(); ++i) {
      const int g = group[index(i)];
      if (mesh.size(i) > 1 &&
          std::find(step.mesh_dims.begin(), step.mesh_dims.end(), g) !=
              step.mesh_dims.end()) {
        over.push_back(i);
      }
    }
    step.mesh_dims = std::move(over);
    step.src = unmerged_layout(step.src, group, mesh, meta);
    step.dst = unmerged_layout(step.dst, group, mesh, meta);
    const bool dealt = step.kind == CollectiveKind::kAllToAll ||
                       step.kind == CollectiveKind::kPermute;
    if (!dealt || step.padded) continue;
    // Sharding dim by dim splits uneven dims at other places, so the exchanged
    // bytes differ.
    plan.bytes_per_rank -= step.bytes_per_rank;
    step.bytes_per_rank =
        redistribute::exchanged_bytes(step.src, step.dst, mesh, meta);
    plan.bytes_per_rank += step.bytes_per_rank;
  }
  return plan;
}

}  // namespace shardprop
