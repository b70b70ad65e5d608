// Plans for a browser, for Graphviz and for Perfetto.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/report/plan_dot.h>
#include <shardprop/report/plan_html.h>
#include <shardprop/report/plan_trace.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

using testing::value_of;

// Sharded by hand, so that something is sent, and trained.
const Plan& plan() {
  static const Plan kPlan = [] {
    const OpLibrary& library = testing::standard_library();
    const Graph graph = value_of(
        load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
    PlanOptions options;
    options.optimizer = Optimizer::kAdamW;
    options.overlap = 1;  // gradients are reduced until after the last matmul
    options.work_limit = 20'000'000;
    options.pins.push_back(value_of(Pin::parse("*proj.weight=S(0),S(1)")));
    return value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2,tp=2")),
                              default_topology(), library, options));
  }();
  return kPlan;
}

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + word.size())) {
    ++found;
  }
  return found;
}

TEST_CASE("the lines end at the objective, nothing overlaps on a line") {
  REQUIRE(plan().summary.communication_nanoseconds > 0);
  const auto trace = nlohmann::json::parse(plan_to_trace(plan()));
  double ends[2] = {0, 0};
  double lasts[2] = {0, 0};
  std::size_t events = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++events;
    const auto line = event["tid"].get<std::size_t>() - 1;
    REQUIRE(line < 2);
    CHECK(event["ts"].get<double>() >= ends[line] - 1e-6);
    ends[line] = event["ts"].get<double>() + event["dur"].get<double>();
    lasts[line] += event["dur"].get<double>();
  }
  CHECK(events > plan().nodes.size());
  const double objective =
      static_cast<double>(*plan().objective_nanoseconds) / 1000;
  CHECK(ends[0] <= objective + 1e-3);
  CHECK(ends[1] <= objective + 1e-3);
  CHECK(lasts[0] ==
        doctest::Approx(
            static_cast<double>(plan().summary.compute_nanoseconds) / 1000));
  CHECK(lasts[1] ==
        doctest::Approx(
            static_cast<double>(plan().summary.communication_nanoseconds) /
            1000));
}

TEST_CASE("a graph has a box for each operator, an edge for each use") {
  const std::string dot = plan_to_dot(plan());
  std::size_t uses = plan().outputs.size();
  std::size_t moved = 0;
  for (const PlannedNode& node : plan().nodes) {
    uses += node.inputs.size();
    for (const PlannedInput& input : node.inputs) moved += input.copy ? 1 : 0;
    CHECK(dot.find('"' + node.name + "\" [label=") != std::string::npos);
  }
  for (const PlannedUpdate& update : plan().updates) {
    uses += update.gradient ? 2 : 1;
    moved += update.gradient && update.gradient->copy ? 1 : 0;
    moved += update.value.copy ? 1 : 0;
  }
  for (const PlannedOutput& output : plan().outputs) {
    moved += output.value.copy ? 1 : 0;
  }
  CHECK(count(dot, "\" -> \"") == uses);
  CHECK(count(dot, "[color=red") == moved);
  CHECK(count(dot, "{\n") == count(dot, "}\n"));
}

TEST_CASE("a page says all, and no name of a file is markup") {
  Plan hostile = plan();
  hostile.graph_name = "<script>alert(1)</script>";
  hostile.nodes[0].module_path = "a\"><b onclick='x'>";
  const std::string page = plan_to_html(hostile);
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("<b ") == std::string::npos);
  CHECK(page.find("http") == std::string::npos);
  for (const PlannedNode& node : plan().nodes) {
    CHECK(page.find(">" + node.name + "<") != std::string::npos);
  }
  for (const PlannedValue& value : plan().values) {
    CHECK(page.find(">" + value.name + "<") != std::string::npos);
  }
  for (const std::string_view tag : {"table", "details", "pre", "h2"}) {
    CHECK(count(page, "<" + std::string(tag) + ">") +
              count(page, "<" + std::string(tag) + " ") ==
          count(page, "</" + std::string(tag) + ">"));
  }
}

TEST_CASE("without a plan there is a page that says so") {
  Plan none;
  none.mesh = value_of(DeviceMesh::parse("2"));
  none.status = PlanStatus::kInfeasible;
  CHECK(plan_to_html(none).find("infeasible") != std::string::npos);
  CHECK(nlohmann::json::parse(plan_to_trace(none))["traceEvents"].size() == 2);
  CHECK(plan_to_dot(none).find("digraph") == 0);
}

}  // namespace
}  // namespace shardprop
