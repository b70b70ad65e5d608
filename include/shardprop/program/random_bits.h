// `random_bits` draws random numbers by element: Philox4x32-10 (Salmon et al.,
// SC'11) with the seed as key and (element, node, block) as counter. All ranks
// that hold an element draw the same number for it, so replicas agree and
// shards equal the unsharded draw.
//
//   counter  low and high 32 bits of the element's row-major index in the
//            full tensor, the node's index in the graph, word / 4
//   key      low and high 32 bits of the seed
//   result   number `word % 4` of the four numbers
#pragma once

#include <array>
#include <cstdint>

namespace shardprop {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

std::uint32_t random_bits(std::uint64_t seed, std::uint32_t node,
                          std::uint64_t element, std::uint32_t word);

}  // namespace shardprop
