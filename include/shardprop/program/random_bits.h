// Random numbers by element: Philox4x32-10 (Salmon et al., SC'11) with the seed
// as key and, as counter, (element, node, block): whoever holds an element of a
// random tensor draws the same number for it, so that replicas agree and shards
// equal the unsharded draw.
//
//   counter  low and high 32 bits of the element's row-major index in the
//            whole tensor, the node's index in the graph, word / 4
//   key      low and high 32 bits of the seed
//   result   the word % 4-th of the four numbers
#pragma once

#include <array>
#include <cstdint>

namespace shardprop {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

std::uint32_t random_bits(std::uint64_t seed, std::uint32_t node,
                          std::uint64_t element, std::uint32_t word);

}  // namespace shardprop
