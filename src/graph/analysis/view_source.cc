#include "graph/analysis/view_source.h"

#include <algorithm>

namespace shardprop {

bool runs_as_view(const IndexSpace& space) {
  return space.is_free && space.program == nullptr;
}

std::optional<std::uint32_t> viewed_operand(const Graph& graph,
                                            const Node& node,
                                            std::size_t output) {
  const Value& value = graph.value(node.outputs[output]);
  const auto viewed =
      std::find(node.inputs.begin(), node.inputs.end(), value.view_of);
  if (value.is_view() && viewed != node.inputs.end()) {
    return static_cast<std::uint32_t>(viewed - node.inputs.begin());
  }
  // Some operators are declared without aliases and are views: `_unsafe_view`,
  // `unsafe_split`.
  if (node.inputs.size() == 1) return 0;
  return std::nullopt;
}

}  // namespace shardprop
