// Plans of graphs in which operators run again.
#include <shardprop/request/plan_request.h>

#include "support/result_checks.h"

#include <shardprop/plan/judge_plan.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/request/graph_reading.h>
#include <shardprop/request/saved_plan.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

PlanRequest request_of(const std::vector<GivenOption>& given) {
  const std::string path = "examples/graphs/tiny/gpt2_train.json.gz";
  LoadedGraph loaded = value_of(load_graph(path, GraphReading()));
  PlanRequest request;
  request.graph = loaded.graph;
  request.library = loaded.library;
  request.mesh = value_of(planned_mesh("dp=2"));
  request.topology = default_topology();
  request.options = value_of(plan_options(given, request.topology));
  request.options.gap = 0;
  return request;
}

std::string rule_of(const Plan& plan) {
  const auto found = std::find_if(
      plan.options.begin(), plan.options.end(),
      [](const auto& option) { return option.first == "recompute"; });
  return found == plan.options.end() ? std::string() : found->second;
}

PlannedGraph planned(const std::string& rule, const std::string& memory) {
  return value_of(
      plan_graph(request_of({{"recompute", rule, {}}, {"memory", memory, {}}})));
}

TEST_CASE("a saved plan runs the graph that it was made for") {
  const PlanRequest request = request_of(
      {{"recompute", "full", {}}, {"execution", "eager", {}}});
  const PlannedGraph made = value_of(plan_graph(request));
  REQUIRE(made.plan.has_plan());
  CHECK(made.plan.graph_hash != hash_text(request.graph->hash()));
  const Plan read = value_of(parse_plan_json(plan_to_json(made.plan)));
  const auto graph =
      value_of(graph_of(read, request.graph, *request.library));
  CHECK(graph->hash() == made.graph->hash());
  CHECK(value_of(judge_plan(read, *graph, *request.library))
            .differences.empty());
  CHECK(std::any_of(read.nodes.begin(), read.nodes.end(),
                    [](const PlannedNode& node) {
                      return !node.second_run_of.empty();
                    }));
  CHECK(read.summary.recompute_nanoseconds > 0);
}

TEST_CASE("a rule keeps less and takes longer") {
  const Plan none = planned("none", "none").plan;
  const Plan selective = planned("selective", "none").plan;
  const Plan full = planned("full", "none").plan;
  CHECK(*none.objective_nanoseconds < *selective.objective_nanoseconds);
  CHECK(*selective.objective_nanoseconds < *full.objective_nanoseconds);
  CHECK(full.memory.peak_bytes < none.memory.peak_bytes);
}

TEST_CASE("auto takes the cheapest rule that fits") {
  const Plan none = planned("none", "none").plan;
  const Plan easy = planned("auto", "1GiB").plan;
  CHECK(rule_of(easy) == "none");
  CHECK(easy.objective_nanoseconds == none.objective_nanoseconds);
  // No plan without second runs fits.
  const auto least = [](const std::string& rule) {
    const Plan plan = planned(rule, "1KiB").plan;
    REQUIRE(plan.status == PlanStatus::kInfeasible);
    REQUIRE(plan.conflict.memory.size() == 1);
    return (1 << 10) + plan.conflict.memory.front().bytes_short;
  };
  const std::int64_t between = (least("none") + least("full")) / 2;
  const Plan tight = planned("auto", std::to_string(between)).plan;
  for (const char* rule : {"none", "selective", "full"}) {
    const Plan plan = planned(rule, std::to_string(between)).plan;
    if (!plan.has_plan()) continue;
    REQUIRE(tight.has_plan());
    CHECK(*tight.objective_nanoseconds <= *plan.objective_nanoseconds);
  }
}

TEST_CASE("a rule is not stated for a graph that does not follow it") {
  PlanRequest request = request_of({{"recompute", "full", {}}});
  request.is_running = true;
  CHECK_CODE(plan_graph(request), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardprop
