// All-gathers whose shards lie one behind the other in one dim of the result:
// said by an interval a rank, so that large groups take little memory.
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

// Nothing where the shards are pieces, or parts of several dims, or do not make
// up the result of the rank at `view.at`.
std::optional<GatheredParts> gathered_parts(
    const RedistributeStep& step, const RankView& view,
    std::span<const Coordinate> members);

}  // namespace shardprop::execute
