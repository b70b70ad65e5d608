// Describes how an assignment shards one factor.
#pragma once

#include <shardprop/placement/local_region.h>
#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace shardprop {

struct FactorShards {
  DimIndices mesh_dims;  // given to the factor; first cut first
  // Split factor of the cut over each of mesh_dims; empty if all are 1.
  DimIndices split_factors;
  // Every strided cut divides a part into pieces of equal size.
  bool equal_pieces = true;
  bool even = true;   // all ranks hold the same number of elements
  bool alike = true;  // all ranks that hold any element hold the same number
  std::int64_t largest = 1;
  std::int64_t smallest = 1;
  // In a dim, each element of the factor may be a run of several elements. The
  // dim is cut at the same places as the factor if these runs are no longer
  // than longest_run. Worked example: 3 rows over 4 ranks give 1, 1, 1 and 0
  // rows. Flattened with rows of 2, the 6 elements over 4 ranks give 2, 2, 2
  // and 0. With rows of 4, the 12 elements give 3 each.
  std::int64_t longest_run = std::numeric_limits<std::int64_t>::max();
};

// `shardings` is FactorShardings::of_all() and gives the factor the mesh dims
// that `assignment` gives it; null stands for mesh order.
FactorShards factor_shards(const IndexSpace& space, const DeviceMesh& mesh,
                           const Assignment& assignment,
                           const Layout* shardings, int factor);
FactorShards factor_shards(const LocalContext& context, int factor);

// Returns whether averages over unequal shards are written as sums with the
// global divisor.
bool averages_as_sums(const IndexSpace& space,
                      const std::vector<FactorShards>& shards);

}  // namespace shardprop
