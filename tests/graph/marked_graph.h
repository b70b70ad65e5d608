// with_marks() adds marks of torch.utils.checkpoint to a graph.
#pragma once

#include "graph/graph_fixture.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {

// NodeMarks are added to the copy of a node.
struct NodeMarks {
  CheckpointMark checkpoint;
  std::string forward_node;
};

// Returns a copy of the graph. Precondition: inputs share no memory.
inline Graph with_marks(
    const Graph& graph,
    const std::function<NodeMarks(const Node& node)>& marks_of) {
  GraphFixture at;
  std::map<ValueId, ValueId> copies;
  for (const GraphInput& input : graph.inputs()) {
    const Value& value = graph.value(input.value);
    copies[input.value] =
        at.input(value.name.c_str(), to_string(value.meta).c_str(), input.kind);
  }
  for (const Node& node : graph.nodes()) {
    NodeMarks marks = marks_of(node);
    NewNode added{.name = node.name,
                  .op = node.op,
                  .forward_node = std::move(marks.forward_node),
                  .checkpoint = std::move(marks.checkpoint),
                  .as_written = true};
    for (const ValueId input : node.inputs) {
      added.inputs.push_back(copies.at(input));
    }
    for (const ValueId output : node.outputs) {
      added.output_names.push_back(graph.value(output).name);
    }
    const auto made = at.builder.add_node(std::move(added));
    REQUIRE(made);
    for (std::size_t i = 0; i < made->size(); ++i) {
      copies[node.outputs[i]] = (*made)[i];
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    NewOutput added{.value = copies.at(output.value), .kind = output.kind};
    if (output.target.valid()) added.target = copies.at(output.target);
    at.builder.add_output(added);
  }
  return at.build();
}

// The layers of a BlockModel of the pattern "dd..", in which a layer is mm, mul, add,
// mm and add. Each layer is one region; `saves` says what its policy saves.
inline Graph with_marked_layers(
    const Graph& graph, int layers,
    const std::function<bool(int place)>& saves = [](int) { return false; }) {
  int forward = 0;
  return with_marks(graph, [&](const Node& node) -> NodeMarks {
    // The first node embeds the tokens.
    const int at = node.phase == Phase::kForward ? forward++ - 1 : -1;
    if (at < 0 || at >= 5 * layers) return {};
    return {{std::to_string(at / 5), saves(at % 5)}, {}};
  });
}

}  // namespace shardprop
