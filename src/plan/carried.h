// Whether a node hands on the elements of what it takes: a view, a copy, a cast.
//
//   w f32[16,8] -> permute -> _to_copy -> mm     both of them do
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/index_space.h>

namespace shardprop {

// `space`: the node's, null where it has none. The result is then the elements
// of the node's only input, maybe in another order, shape or dtype.
bool carries_elements(const Graph& graph, const Node& node,
                      const IndexSpace* space);

}  // namespace shardprop
