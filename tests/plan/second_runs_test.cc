// Both runs of an operator have one strategy.
#include "graph/block_model.h"
#include "plan/problem/equal_choices.h"
#include "plan/problem/plan_problem.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"

#include <shardprop/graph/recompute.h>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::code_of;
using testing::value_of;

std::shared_ptr<const Graph> running_again() {
  return value_of(running_graph(
      std::make_shared<const Graph>(BlockModel(true).build("ddd")),
      testing::standard_library(),
      {.recompute = value_of(Recompute::parse("full"))}));
}

Result<PlanProblem> on_two_ranks(const Graph& graph,
                                 const std::vector<std::string>& pins) {
  PlanOptions options;
  options.layers = Layers::kFree;
  for (const std::string& pin : pins) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  return PlanProblem::create(graph, value_of(DeviceMesh::parse("2")),
                             testing::dear_compute(),
                             testing::standard_library(), options);
}

// Returns the variables of the operators that run again, each with that of its
// second run.
std::vector<std::pair<PlanVariableId, PlanVariableId>> both_runs(
    const PlanProblem& problem) {
  const Graph& graph = problem.graph();
  std::vector<PlanVariableId> of_node(graph.nodes().size());
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    const PlanVariable& variable = problem.variables()[v];
    if (variable.kind != PlanVariable::Kind::kOperator) continue;
    of_node[variable.index] = PlanVariableId(v);
  }
  std::vector<std::pair<PlanVariableId, PlanVariableId>> out;
  for (const Node& node : graph.nodes()) {
    if (!node.runs_again()) continue;
    out.emplace_back(of_node[node.second_run_of.index()],
                     of_node[node.id.index()]);
  }
  return out;
}

TEST_CASE("both runs of an operator choose alike, with free layers too") {
  const auto graph = running_again();
  const PlanProblem problem = value_of(on_two_ranks(*graph, {}));
  const auto runs = both_runs(problem);
  CHECK(runs.size() == 6);
  for (const auto& [first, second] : runs) {
    CHECK(problem.equal_choices().first(second) ==
          problem.equal_choices().first(first));
  }
  CHECK_FALSE(problem.equal_choices().have_layers());
}

TEST_CASE("a pin of one run is a pin of both") {
  const auto graph = running_again();
  for (const Node& node : graph->nodes()) {
    if (!node.runs_again()) continue;
    const std::string& first = graph->node(node.second_run_of).name;
    for (const std::string& name : {first, node.name}) {
      const PlanProblem problem =
          value_of(on_two_ranks(*graph, {name + "=S(0)"}));
      for (const auto& [a, b] : both_runs(problem)) {
        const ChoiceSet& of_a = *problem.variable(a).choices;
        CHECK(have_same_choices(of_a, *problem.variable(b).choices));
        if (graph->node(NodeId(problem.variable(a).index)).name != first) {
          continue;
        }
        const auto& results = of_a.layouts[of_a.num_uses];
        REQUIRE(results.size() == 1);
        CHECK(to_string(problem.layouts()[results[0]]) == "S(0)");
      }
    }
  }
}

TEST_CASE("pins that leave two runs no common strategy are a conflict") {
  const auto graph = running_again();
  for (const Node& node : graph->nodes()) {
    if (!node.runs_again()) continue;
    CHECK(code_of(on_two_ranks(
              *graph, {graph->node(node.second_run_of).name + "=S(0)",
                       node.name + "=S(1)"})) == ErrorCode::kPinConflict);
  }
}

}  // namespace
}  // namespace shardprop
