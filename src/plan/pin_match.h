// Which values and uses of a graph a pin is for.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/plan/pin.h>

#include <string_view>
#include <vector>

namespace shardprop {

// An input of the program, by its own name, its graph name or an alias, and by
// its module; never where the pin has terms on operators or phases.
bool matches_input(const Pin& pin, const Value& input);
// An input, as `node` takes it.
bool matches_use(const Pin& pin, const Value& input, const Node& node);
// What a node makes; by the node's name its first result only.
bool matches_result(const Pin& pin, const Node& node, const Value& result);

// Every name that a term of the kind may match in the graph.
std::vector<std::string_view> names_to_pin(const Graph& graph,
                                           PinTerm::Kind kind);

}  // namespace shardprop
