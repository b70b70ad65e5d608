// Tests the cost that each strategy of an operator would have in its graph.
#include <shardprop/plan/weigh_strategies.h>

#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

const std::string kGraph = "examples/graphs/tiny/mlp_dynamic.json.gz";

struct Setting {
  Graph graph = value_of(load_graph(kGraph, testing::standard_library()));
  DeviceMesh mesh = value_of(DeviceMesh::parse("dp=2,tp=2"));

  Result<WeighedNode> weigh(NodeId node, const PlanOptions& options) const {
    return weigh_strategies(graph, node, mesh, default_topology(),
                            testing::standard_library(), options);
  }
  Result<Plan> plan(const PlanOptions& options) const {
    return make_plan(graph, mesh, default_topology(),
                     testing::standard_library(), options);
  }
};

PlanOptions by_work() {
  PlanOptions options;
  options.work_limit = 50'000'000;
  return options;
}

TEST_CASE("a forced strategy has one layout for each operand of its node") {
  const Setting s;
  const auto first = std::find_if(
      s.graph.nodes().begin(), s.graph.nodes().end(), [&](const Node& node) {
        return s.weigh(node.id, by_work()).has_value();  // not a view
      });
  REQUIRE(first != s.graph.nodes().end());
  const Node& node = *first;
  const WeighedNode why = value_of(s.weigh(node.id, by_work()));
  const WeighedStrategy& one = why.strategies.front();
  const auto planned = [&](std::vector<Layout> takes,
                           std::vector<Layout> makes) {
    PlanOptions options = by_work();
    options.forced =
        ForcedStrategy{node.id, std::move(takes), std::move(makes)};
    return s.plan(options);
  };
  CHECK(planned(one.takes, one.makes).has_value());
  std::vector<Layout> more = one.makes;
  more.insert(more.end(), 3, more.front());
  CHECK_CODE(planned(one.takes, more), ErrorCode::kPinNoStrategy);
  CHECK_CODE(planned({}, one.makes), ErrorCode::kPinNoStrategy);
  CHECK_CODE(planned(one.takes, {}), ErrorCode::kPinNoStrategy);
}

// The best of all strategies is the plan, whichever operator is asked.
TEST_CASE("the chosen strategy costs what the plan does, no other less") {
  const Setting s;
  const Plan best = value_of(s.plan(by_work()));
  REQUIRE(best.status == PlanStatus::kOptimal);
  int weighed = 0;
  for (const Node& node : s.graph.nodes()) {
    const auto why = s.weigh(node.id, by_work());
    if (!why) {
      CHECK_CODE(why, ErrorCode::kInvalidArgument);
      continue;
    }
    CAPTURE(node.name);
    ++weighed;
    CHECK(why->objective_nanoseconds == best.objective_nanoseconds);
    REQUIRE(!why->strategies.empty());
    CHECK(why->strategies[0].chosen);
    std::int64_t before = 0;
    for (const WeighedStrategy& one : why->strategies) {
      REQUIRE(one.objective_nanoseconds.has_value());
      CHECK(*one.objective_nanoseconds >= *best.objective_nanoseconds);
      CHECK(*one.objective_nanoseconds >= before);
      CHECK(one.lower_bound_nanoseconds <= *one.objective_nanoseconds);
      CHECK(one.chosen == (&one == &why->strategies[0]));
      before = *one.objective_nanoseconds;
    }
  }
  CHECK(weighed == 3);
}

TEST_CASE("a forced strategy is what the plan does there, at that cost") {
  const Setting s;
  const auto matmul = std::find_if(
      s.graph.nodes().begin(), s.graph.nodes().end(), [](const Node& node) {
        return node.op_name() == "aten.mm.default" ||
               node.op_name() == "aten.addmm.default" ||
               node.op_name() == "aten.linear.default";
      });
  REQUIRE(matmul != s.graph.nodes().end());
  const WeighedNode why = value_of(s.weigh(matmul->id, by_work()));
  for (const WeighedStrategy& one : why.strategies) {
    PlanOptions options = by_work();
    options.forced = ForcedStrategy{matmul->id, one.takes, one.makes};
    const Plan plan = value_of(s.plan(options));
    CHECK(plan.objective_nanoseconds == one.objective_nanoseconds);
    const auto planned = std::find_if(
        plan.nodes.begin(), plan.nodes.end(),
        [&](const PlannedNode& n) { return n.name == matmul->name; });
    REQUIRE(planned != plan.nodes.end());
    CHECK(planned->outputs[0].tensor.layout == one.makes[0]);
    for (std::size_t i = 0; i < one.takes.size(); ++i) {
      CHECK(planned->inputs[i].layout == one.takes[i]);
    }
  }
}

TEST_CASE("forcing a strategy that the operator lacks is an error") {
  const Setting s;
  PlanOptions options = by_work();
  const Node& node = s.graph.nodes()[0];
  options.forced = ForcedStrategy{node.id, {}, {}};
  for (const Node& any : s.graph.nodes()) {
    options.forced->node = any.id;
    const auto plan = s.plan(options);
    if (plan) continue;  // a view has no strategies of its own
    CHECK_CODE(plan, ErrorCode::kPinNoStrategy);
    return;
  }
  FAIL("no operator minded");
}

TEST_CASE("what is not sharded is said with its reason") {
  const Setting s;
  const DeviceMesh wide = value_of(DeviceMesh::parse("dp=2,tp=4096"));
  bool found = false;
  for (const Node& node : s.graph.nodes()) {
    const auto why =
        weigh_strategies(s.graph, node.id, wide, default_topology(),
                         testing::standard_library(), by_work());
    if (!why) continue;
    for (const UnshardedDim& dim : why->unsharded) {
      CHECK(dim.size > 1);
      CHECK(!dim.why.empty());
      found = found || dim.why.find("4096 ranks of tp") != std::string::npos;
    }
  }
  CHECK(found);
}

}  // namespace
}  // namespace shardprop
