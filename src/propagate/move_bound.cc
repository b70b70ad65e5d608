#include "propagate/move_bound.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <bit>

namespace shardprop {
namespace {

constexpr CollectiveKind kKinds[] = {
    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
    CollectiveKind::kPermute};

bool sums(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kAvg; }

}  // namespace

Change change(Placement given, Placement needed) {
  if (given.is_replicate()) return Change::kNone;
  if (given.is_shard()) {
    if (needed.is_partial()) return Change::kImpossible;
    // Another order of the cuts is left to the planner.
    const bool stays = needed.is_shard() && needed.dim() == given.dim();
    return stays ? Change::kNone : Change::kCollective;
  }
  if (!needed.is_partial()) return Change::kCollective;
  const bool stays = given.reduce_op() == needed.reduce_op() ||
                     (sums(given.reduce_op()) && sums(needed.reduce_op()));
  return stays ? Change::kNone : Change::kCollective;
}

MoveBound::MoveBound(const Topology& topology, const DeviceMesh& mesh)
    : mesh_(mesh) {
  const MeshPlaces places(topology, mesh);
  const auto dims = static_cast<std::uint32_t>(mesh.ndim());
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  by_dim_.assign(dims, kNever);
  by_bytes_.fill(kNever);
  for (std::uint32_t mask = 1; mask < 1U << dims; ++mask) {
    const GroupPlace place = places.of_mask(mask);
    if (place.ranks == 1) continue;
    for (const CollectiveKind kind : kKinds) {
      const auto lines = collective_algorithms(topology, kind, place);
      if (lines.empty()) continue;
      std::int64_t least = kNever;
      // Corrections of the lines may make a larger message the faster one.
      for (std::size_t p = kPowers; p-- > 0;) {
        least = std::min(least,
                         line_nanoseconds(lines, place, std::int64_t{1} << p));
        by_bytes_[p] = std::min(by_bytes_[p], least);
      }
      for (std::uint32_t m = 0; m < dims; ++m) {
        if ((mask >> m & 1U) != 0) by_dim_[m] = std::min(by_dim_[m], least);
      }
    }
  }
}

std::int64_t MoveBound::at_least(const Layout& given, const Layout& needed,
                                 const TensorMeta& meta) const {
  if (given == needed || meta.numel() == 0) return 0;
  bool reduces = false;
  std::int64_t least = 0;
  for (int m = 0; m < mesh_.ndim(); ++m) {
    if (mesh_.size(m) == 1) continue;
    if (change(given[m], needed[m]) == Change::kCollective) {
      least = std::max(least, at_least(m));
    }
    reduces = reduces || (given[m].is_partial() && !needed[m].is_partial());
  }
  if (least == 0) return 0;
  const std::int64_t wanted = max_local_bytes(needed, mesh_, meta);
  const std::int64_t lacking =
      reduces ? wanted : wanted - max_local_bytes(given, mesh_, meta);
  if (lacking < 1) return least;
  const auto power = static_cast<std::size_t>(
      std::bit_width(static_cast<std::uint64_t>(lacking)) - 1);
  return std::max(least, by_bytes_[std::min<std::size_t>(power, kPowers - 1)]);
}

}  // namespace shardprop
