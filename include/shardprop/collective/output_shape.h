// These functions return the shapes of collectives' results without running
// them. all_reduce, broadcast and permute_tensor keep the input's shape.
//
//   all_gather_shape({3, 8}, 1, 4)      // 3,32
//   reduce_scatter_shape({3, 8}, 1, 4)  // 3,2
//   all_to_all_single_shape({6, 8}, {.output = {{1, 2}}, .input = {{4, 2}}}, 2)
//                                       // 3,8
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/result.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

// `Splits` says how dim 0 is distributed: input[r] rows go to member r,
// output[r] rows come from it. Set both or neither; without splits all shares
// are equal.
struct Splits {
  std::optional<std::vector<std::int64_t>> output;
  std::optional<std::vector<std::int64_t>> input;
};

// Negative dims count from the end.

// Error: kCollectiveDim (out of range; a scalar has none).
Result<Dims> all_gather_shape(const Dims& sizes, int dim, std::int64_t ranks);
// Error: kCollectiveDim (out of range, or a size that `ranks` does not divide).
Result<Dims> reduce_scatter_shape(const Dims& sizes, int dim,
                                  std::int64_t ranks);
// Errors: kCollectiveDim (a scalar), kCollectiveSplits (only one of the two,
// another length than `ranks`, a negative split, input splits that do not sum
// to dim 0, no splits although `ranks` does not divide dim 0).
Result<Dims> all_to_all_single_shape(const Dims& sizes, const Splits& splits,
                                     std::int64_t ranks);

}  // namespace shardprop
