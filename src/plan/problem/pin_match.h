// Functions that match a pin against the values of a graph and their uses.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/plan/pin.h>

#include <string_view>
#include <vector>

namespace shardprop {

// Matches an input of the program by its own name, its graph name or an alias,
// and by its module. A pin with terms on operators or phases matches no input.
bool matches_input(const Pin& pin, const Value& input);
// Matches an input as `node` reads it.
bool matches_use(const Pin& pin, const Value& input, const Node& node);
// Matches a result of a node. The name of the node matches only its first
// result.
bool matches_result(const Pin& pin, const Node& node, const Value& result);

// Returns every name in the graph that a term of the kind may match.
std::vector<std::string_view> names_to_pin(const Graph& graph,
                                           PinTerm::Kind kind);

}  // namespace shardprop
