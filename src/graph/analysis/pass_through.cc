#include "graph/analysis/pass_through.h"

namespace shardprop {

bool carries_elements(const Graph& graph, const Node& node,
                      const IndexSpace* space) {
  if (node.inputs.size() != 1 || node.outputs.size() != 1) return false;
  return graph.value(node.outputs[0]).is_view() ||
         (space != nullptr && space->carries);
}

}  // namespace shardprop
