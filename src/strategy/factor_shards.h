// How an assignment cuts one factor.
#pragma once

#include <shardprop/placement/local_region.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace shardprop {

struct FactorShards {
  DimIndices mesh_dims;  // given to the factor, first cut first
  bool even = true;      // every rank holds equally much
  bool alike = true;     // every rank that holds any
  std::int64_t largest = 1;
  std::int64_t smallest = 1;
  // A dim in which each element of the factor is a run of that many is cut at
  // the same places if the runs are no longer than this. Worked example: 3 rows
  // over 4 ranks are 1, 1, 1 and 0 of them; flattened with rows of 2, 6
  // elements over 4 ranks are 2, 2, 2 and 0, with rows of 4, 12 are 3 each.
  std::int64_t longest_run = std::numeric_limits<std::int64_t>::max();
};

FactorShards factor_shards(const IndexSpace& space, const DeviceMesh& mesh,
                           const Assignment& assignment, int factor);

// Whether averages over unequal shards are written as sums with the global
// divisor.
bool averages_as_sums(const IndexSpace& space,
                      const std::vector<FactorShards>& shards);

}  // namespace shardprop
