// Memory that a node does not make: that of an operand, shown anew.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/index_space.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shardprop {

// Whether a node moves no data, whatever it is laid out on: its row calls it
// free, and it has no program of its own, which may copy.
bool runs_as_view(const IndexSpace& space);

// The operand whose memory an output of such a node is. Empty where several
// could be.
//
//   slice f32[8,4] -> f32[2,4]      operand 0
//   split f32[8,6] -> 3 x f32[8,2]  operand 0, for each of them
std::optional<std::uint32_t> shown_operand(const Graph& graph, const Node& node,
                                           std::size_t output);

}  // namespace shardprop
