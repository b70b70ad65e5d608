// is_whole_view() tells views of all elements, as transpose, from views of a part,
// as select.
#pragma once

#include <shardprop/graph/graph.h>

namespace shardprop {

// Returns whether the result of the node is a view of all elements of its only
// operand, in the operand's dtype.
bool is_whole_view(const Graph& graph, const Node& node);

}  // namespace shardprop
