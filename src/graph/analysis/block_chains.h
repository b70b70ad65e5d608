// BlockChains follows each element of a graph from one repetition of a block to
// the next, given how many nodes deep a repetition is.
//
//   x -> mm(w0) -> relu -> mm(w1) -> relu -> mm(w2) -> relu      distance 2
//   chains  {mm, mm_1, mm_2}  {relu, relu_1, relu_2}  {w0, w1, w2}
#pragma once

#include "graph/analysis/graph_structure.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

struct BlockChains {
  static constexpr std::uint32_t kNoChain = 0xffffffffU;
  // Elements of one chain have equal signatures, and at least two belong to it.
  std::vector<std::vector<GraphStructure::Element>> chains;
  // By element: its chain, or kNoChain, and its place in it.
  std::vector<std::uint32_t> chain_of;
  std::vector<std::int32_t> place;
};

// Returns the depths of a repetition that pairs of equally labelled forward
// nodes suggest, the most frequent first, at most `most`. `taken` marks elements
// to leave out.
std::vector<std::int32_t> likely_distances(
    const GraphStructure& structure, const std::vector<std::uint64_t>& labels,
    const std::vector<bool>& taken, std::size_t most);

// Pairs equally labelled forward nodes whose depths differ by `distance`, and
// from each pair on their operands and readers, as far as signatures agree. The
// operands of a pair that are one and the same element have no pair.
BlockChains block_chains(const GraphStructure& structure,
                         const std::vector<std::uint64_t>& labels,
                         const std::vector<bool>& taken, std::int32_t distance);

}  // namespace shardprop
