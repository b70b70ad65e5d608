// Describes an all-gather whose shards are consecutive in one dim of the result
// by one interval per rank, so that large groups need little memory.
#pragma once

#include "execute/compile.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <optional>
#include <span>
#include <vector>

namespace shardprop::execute {

struct GatheredParts {
  int dim = 0;
  std::vector<Interval> parts;  // by member, of the local result
};

// Returns nullopt if a shard has several intervals, if shards split several
// dims, or if the shards do not add up to the result of the rank at `view.at`.
std::optional<GatheredParts> gathered_parts(
    const RedistributeStep& step, const RankView& view,
    std::span<const Coordinate> members);

}  // namespace shardprop::execute
