#include "graph/recompute/run_selection.h"

#include <algorithm>

namespace shardprop {

RunSelection::RunSelection(const Graph& graph, const OpLibrary& library)
    : graph_(graph), facts_(graph, library), last_(last_forward(graph)) {
  runs_.group.assign(graph.nodes().size(), SecondRuns::kOnce);
  runs_.moves.assign(graph.nodes().size(), false);
}

void RunSelection::add(const Node& node, const OperatorFacts& facts,
                       std::int32_t group) {
  if (facts.runs_once || node.id.index() > last_) return;
  if (facts.is_view && !reads_second_run(node)) return;
  if (node.phase == Phase::kForward) {
    runs_.group[node.id.index()] = group;
  } else {
    runs_.moves[node.id.index()] = true;
  }
}

bool RunSelection::reads_second_run(const Node& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) {
                       const Value& value = graph_.value(input);
                       if (value.is_input()) return false;
                       const std::size_t producer = value.producer.index();
                       return runs_.group[producer] != SecondRuns::kOnce ||
                              runs_.moves[producer];
                     });
}

bool RunSelection::is_empty() const {
  return std::none_of(runs_.group.begin(), runs_.group.end(),
                      [](std::int32_t g) { return g != SecondRuns::kOnce; });
}

}  // namespace shardprop
