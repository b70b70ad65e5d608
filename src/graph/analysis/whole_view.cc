#include "graph/analysis/whole_view.h"

namespace shardprop {

bool is_whole_view(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 1 || node.outputs.size() != 1) return false;
  const Value& out = graph.value(node.outputs[0]);
  const Value& in = graph.value(node.inputs[0]);
  return out.view_of == node.inputs[0] && out.meta.dtype() == in.meta.dtype() &&
         out.meta.numel() == in.meta.numel();
}

}  // namespace shardprop
