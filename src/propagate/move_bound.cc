#include "propagate/move_bound.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/index.h"

namespace shardprop {
namespace {

constexpr CollectiveKind kKinds[] = {
    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
    CollectiveKind::kPermute};

// Returns the message (S or B of collective_cost.h) that delivers `bytes`
// missing bytes to a rank. A gather or exchange sends everything but the
// rank's own part. A reduction sends the terms of the other ranks.
double message(CollectiveKind kind, double bytes, double ranks) {
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
      return bytes * ranks / (ranks - 1);
    default:
      return bytes;
  }
}

bool sums(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kAvg; }

}  // namespace

Change change(Placement given, Placement needed) {
  if (given.is_replicate()) return Change::kNone;
  if (given.is_shard()) {
    if (needed.is_partial()) return Change::kImpossible;
    // The planner decides about another order of the cuts.
    const bool stays = needed.is_shard() && needed.dim() == given.dim();
    return stays ? Change::kNone : Change::kCollective;
  }
  if (!needed.is_partial()) return Change::kCollective;
  const bool stays = given.reduce_op() == needed.reduce_op() ||
                     (sums(given.reduce_op()) && sums(needed.reduce_op()));
  return stays ? Change::kNone : Change::kCollective;
}

void MoveBound::OfDim::add(CollectiveKind kind, std::int64_t nanoseconds) {
  const bool gathers = kind == CollectiveKind::kAllGather;
  const bool exchanges =
      kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kPermute;
  any = std::min(any, nanoseconds);
  if (gathers) gather = std::min(gather, nanoseconds);
  if (gathers || exchanges) shards = std::min(shards, nanoseconds);
}

MoveBound::MoveBound(const Topology& topology, const DeviceMesh& mesh)
    : mesh_(mesh) {
  const MeshPlaces places(topology, mesh);
  const auto dims = static_cast<std::uint32_t>(mesh.ndim());
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  by_dim_.assign(dims, {kNever, kNever, kNever});
  by_bytes_.fill(kNever);
  for (std::uint32_t mask = 1; mask < 1U << dims; ++mask) {
    const GroupPlace place = places.of_mask(mask);
    if (place.ranks == 1) continue;
    for (const CollectiveKind kind : kKinds) {
      const auto lines = collective_algorithms(topology, kind, place);
      if (lines.empty()) continue;
      std::int64_t least = kNever;
      // With corrections of the lines, a larger message may be the faster one.
      for (int s = kSteps; s-- > 0;) {
        const double lacking = std::ldexp(1 + (s % 4) / 4.0, s / 4);
        const double bytes =
            message(kind, lacking, static_cast<double>(place.ranks));
        least = std::min(
            least,
            line_nanoseconds(lines, place, static_cast<std::int64_t>(bytes)));
        auto& slot = by_bytes_[index(s)];
        slot = std::min(slot, least);
      }
      for (std::uint32_t m = 0; m < dims; ++m) {
        if ((mask >> m & 1U) != 0) by_dim_[m].add(kind, least);
      }
    }
  }
}

std::int64_t MoveBound::coming(std::int64_t bytes) const {
  if (bytes < 1) return 0;
  // The step consists of the exponent and the first two bits of the mantissa.
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(bytes));
  const auto step = index((bits >> 50) - (1023U << 2));
  return by_bytes_[std::min<std::size_t>(step, kSteps - 1)];
}

std::int64_t MoveBound::at_least(const Layout& given, const Layout& needed,
                                 const TensorMeta& meta) const {
  if (given == needed || meta.numel() == 0) return 0;
  bool reduces = false;
  std::int64_t least = 0;
  for (int m = 0; m < mesh_.ndim(); ++m) {
    if (mesh_.size(m) == 1) continue;
    if (change(given[m], needed[m]) == Change::kCollective) {
      least = std::max(least, at_least(m, given[m], needed[m]));
    }
    reduces = reduces || (given[m].is_partial() && !needed[m].is_partial());
  }
  if (least == 0) return 0;
  const std::int64_t wanted = max_local_bytes(needed, mesh_, meta);
  const std::int64_t lacking =
      reduces ? wanted : wanted - max_local_bytes(given, mesh_, meta);
  return std::max(least, coming(lacking));
}

}  // namespace shardprop
