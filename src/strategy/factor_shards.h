// How an assignment cuts one factor.
#pragma once

#include <shardprop/placement/local_region.h>
#include <shardprop/strategy/op_strategy.h>

#include <vector>

namespace shardprop {

struct FactorShards {
  DimIndices mesh_dims;  // given to the factor, first cut first
  bool even = true;      // every rank holds equally much
  std::int64_t largest = 1;
  std::int64_t smallest = 1;
};

FactorShards factor_shards(const IndexSpace& space, const DeviceMesh& mesh,
                           const Assignment& assignment, int factor);

// Whether averages over unequal shards are written as sums with the global
// divisor.
bool averages_as_sums(const IndexSpace& space,
                      const std::vector<FactorShards>& shards);

}  // namespace shardprop
