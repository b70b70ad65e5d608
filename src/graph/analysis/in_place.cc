#include "graph/analysis/in_place.h"

namespace shardprop {

InPlace::InPlace(const Graph& graph)
    : graph_(graph), memory_(graph.buffers().size()) {
  const auto memory_of = [&](ValueId value) -> Memory& {
    return memory_[graph.value(value).buffer.index()];
  };
  for (const Node& node : graph.nodes()) {
    const auto at = static_cast<std::int64_t>(node.id.index());
    for (const ValueId input : node.inputs) {
      Memory& memory = memory_of(input);
      if (memory.last_use != at) memory.uses_there = 0;
      memory.last_use = at;
      ++memory.uses_there;
    }
  }
  for (const GraphInput& input : graph.inputs()) {
    memory_of(input.value).changeable = false;
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind == OutputKind::kUpdate && output.target.valid()) {
      memory_of(output.target).changeable = true;
    }
  }
  // An output must keep its value.
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind != OutputKind::kUpdate) {
      memory_of(output.value).changeable = false;
    }
  }
}

bool InPlace::may(const Node& node, std::size_t input) const {
  const Memory& memory =
      memory_[graph_.value(node.inputs[input]).buffer.index()];
  return memory.changeable && memory.uses_there == 1 &&
         memory.last_use == static_cast<std::int64_t>(node.id.index());
}

}  // namespace shardprop
