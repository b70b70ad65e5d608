// BlockOffsets places chains into blocks: it finds the values that alone lead
// from one block to the next, and with them the block of each element.
//
//   x -> mm -> relu -> mm_1 -> relu_1      chains mm, relu
//   `relu` leads to the next block: mm and relu are block 0, mm_1 and relu_1
//   are block 1
//
// In the forward phase a value that leads on is read by the next block, and in
// the backward phase by the block before.
#pragma once

#include "graph/analysis/block_chains.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

// PlacedChains is a connected set of chains. The element at place p of
// `chains[i]` belongs to block offsets[i] + p.
struct PlacedChains {
  std::vector<std::uint32_t> chains;
  std::vector<std::int32_t> offsets;
};

// Returns one set for each connected component of chains whose blocks read each
// other. The offsets are a proposal: the elements of blocks may disagree
// (block_runs.cc). It assumes that at most kMostLeading values of each phase
// lead from block to block.
inline constexpr std::size_t kMostLeading = 3;
std::vector<PlacedChains> placed_chains(const GraphStructure& structure,
                                        const BlockChains& chains);

// BlockSpan is a range of blocks, both ends included.
struct BlockSpan {
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::int32_t count() const { return last - first + 1; }
  friend bool operator==(const BlockSpan&, const BlockSpan&) = default;
};

// Returns the spans that chains have, the one with most elements first.
std::vector<BlockSpan> frequent_spans(const BlockChains& chains,
                                      const PlacedChains& placed,
                                      std::size_t most);

}  // namespace shardprop
