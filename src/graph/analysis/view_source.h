// viewed_operand() finds the operand whose memory an output of a node aliases.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/index_space.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shardprop {

// Returns whether a node moves no data under any layout: its rule calls it
// free, and it has no program of its own, which may copy.
bool runs_as_view(const IndexSpace& space);

// Returns the operand whose memory an output of this node aliases. Empty if
// several operands are possible.
//
//   slice f32[8,4] -> f32[2,4]      operand 0
//   split f32[8,6] -> 3 x f32[8,2]  operand 0, for each of them
std::optional<std::uint32_t> viewed_operand(const Graph& graph,
                                            const Node& node,
                                            std::size_t output);

}  // namespace shardprop
