#include "graph/content_hash.h"
#include "graph/graph_body.h"

#include <string_view>

namespace shardprop {
std::uint64_t hash_graph(const Graph::Body& body) {
  ContentHash hash;
  for (const GraphInput& input : body.inputs) {
    const Value& value = body.values[input.value.index()];
    hash.add(static_cast<std::uint64_t>(input.kind));
    hash.add(std::string_view(value.display_name()));
    hash.add(value.meta);
    hash.add(value.buffer.index());
  }
  for (const Node& node : body.nodes) {
    hash.add(std::string_view(node.name));
    hash.add(std::string_view(node.op_name()));
    for (const Argument& argument : node.op.args) hash.add(argument);
    for (const ValueId input : node.inputs) hash.add(input.index());
    for (const ValueId output : node.outputs) {
      const Value& value = body.values[output.index()];
      hash.add(std::string_view(value.name));
      hash.add(value.meta);
      hash.add(value.buffer.index());
    }
  }
  for (const GraphOutput& output : body.outputs) {
    hash.add(static_cast<std::uint64_t>(output.kind));
    hash.add(output.value.index());
    if (output.target.valid()) hash.add(output.target.index());
  }
  return hash.state();
}

}  // namespace shardprop
