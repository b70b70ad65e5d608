// carries_elements() finds nodes whose result has the elements of their input:
// views, copies and casts.
//
//   w f32[16,8] -> permute -> _to_copy -> mm     permute and _to_copy do
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/index_space.h>

namespace shardprop {

// `space` is the node's index space, or null if it has none. If the function
// returns true, the result has the elements of the node's only input, possibly
// in another order, shape or dtype.
bool carries_elements(const Graph& graph, const Node& node,
                      const IndexSpace* space);

}  // namespace shardprop
