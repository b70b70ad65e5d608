// Emits Philox4x32-10 (program/random_bits.h) as operators on 64-bit integers.
#pragma once

#include "io/emit/torch_graph.h"

#include <shardprop/placement/local_region.h>

#include <cstdint>
#include <vector>

namespace shardprop::emit {

// Returns the four words of a block, i64 in [0, 2^32), for every element of
// `region`. `whole` has the sizes of the full tensor.
std::vector<TorchId> philox_words(TorchGraph& graph, TorchId seed,
                                  std::int64_t node, std::int64_t block,
                                  const LocalRegion& region, const Dims& whole,
                                  const Argument& device);

}  // namespace shardprop::emit
