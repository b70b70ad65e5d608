// NetworkSearch solves the networks of one problem and keeps plans and bounds.
// LayerMix mixes the plans that it finds, layer by layer.
#include "plan/search/network_search.h"
#include "plan/problem/equal_choices.h"
#include "plan/search/layer_mix.h"
#include "plan/search/procedures.h"
#include "plan/search/solve_plan.h"
#include "plan/slow_links.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/graph/recompute.h>
#include <shardprop/io/load_graph.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

PlanOptions overlapped_training() {
  PlanOptions options;
  options.overlap = 1;
  options.optimizer = Optimizer::kAdamW;
  options.time_limit_seconds = 1e9;
  options.threads = 1;
  return options;
}

PlanProblem slow_problem(const Graph& graph, const PlanOptions& options,
                         double times = 8) {
  return value_of(PlanProblem::create(
      graph, value_of(DeviceMesh::parse("dp=8")), test::slow_links(times),
      testing::standard_library(), options));
}

Graph two_blocks() {
  return test::residual_training(testing::standard_library(), 2, "4096", "1024",
                                 "4096");
}

// Returns options under which the solver searches: reductions alone solve the
// networks of small graphs, and take no work.
PlanOptions without_reductions() {
  PlanOptions options = overlapped_training();
  options.switched_off = {"contraction", "dominance", "low-degree",
                          "elimination"};
  return options;
}

Graph tiny_llama() {
  return value_of(load_graph("examples/graphs/tiny/llama3_train.json.gz",
                             testing::standard_library()));
}

// Returns residual_training() as a model with one module for each block.
Graph layered(int blocks) {
  const Graph plain = test::residual_training(testing::standard_library(),
                                              blocks, "4096", "1024", "4096");
  GraphBuilder b("layered", testing::standard_library());
  std::vector<ValueId> value(plain.values().size());
  for (const GraphInput& input : plain.inputs()) {
    const Value& of = plain.value(input.value);
    value[of.id.index()] = value_of(
        b.add_input({.kind = input.kind, .name = of.name, .meta = of.meta}));
  }
  for (const Node& node : plain.nodes()) {
    NewNode added{.name = node.name, .op = node.op};
    for (const ValueId input : node.inputs) {
      added.inputs.push_back(value[input.index()]);
    }
    // The names of all nodes end in the number of their block.
    added.module_path = std::string("layers.") + node.name.back();
    const auto results = value_of(b.add_node(std::move(added)));
    for (std::size_t o = 0; o < results.size(); ++o) {
      value[node.outputs[o].index()] = results[o];
    }
  }
  for (const GraphOutput& output : plain.outputs()) {
    b.add_output({.value = value[output.value.index()],
                  .kind = output.kind,
                  .target = output.target.valid() ? value[output.target.index()]
                                                  : ValueId()});
  }
  return value_of(std::move(b).build());
}

Budget work_budget(std::uint64_t work) {
  return Budget({.seconds = 1e9, .work = work});
}

TEST_CASE("a network of the full problem gives a plan and a bound") {
  const Graph graph = tiny_llama();
  const PlanProblem problem = slow_problem(graph, without_reductions());
  NetworkSearch search(problem, work_budget(100'000'000));
  const SolvedNetwork solved = search.solve({});
  REQUIRE(solved);
  const PlanSolution& best = search.incumbent().solution();
  CHECK(best.evaluation.objective == solved.evaluation.objective);
  CHECK(best.lower_bound == solved.bound);
  CHECK(solved.work > 0);
  CHECK(search.budget().work_spent() == solved.work);
  CHECK(search.first_work() == solved.work);
}

TEST_CASE("a network with restricted choices gives a plan and no bound") {
  const Graph graph = two_blocks();
  const PlanProblem problem = slow_problem(graph, overlapped_training());
  NetworkSearch search(problem, work_budget(100'000'000));
  const SolvedNetwork solved = search.solve({}, {.bounds = false});
  REQUIRE(solved);
  CHECK(search.incumbent().found());
  CHECK(search.incumbent().solution().lower_bound == 0);
}

TEST_CASE("a restricted network without a solution proves nothing") {
  const Graph graph = two_blocks();
  PlanOptions options = overlapped_training();
  options.memory_limit = 1;
  const PlanProblem problem = slow_problem(graph, options);
  NetworkSearch restricted(problem, work_budget(100'000'000));
  CHECK(
      restricted.solve({.memory_limit = 1}, {.bounds = false}).is_infeasible());
  CHECK(std::move(restricted).finish().status == PlanStatus::kUnknown);
  NetworkSearch whole(problem, work_budget(100'000'000));
  CHECK(whole.solve({.memory_limit = 1}).is_infeasible());
  CHECK(std::move(whole).finish().status == PlanStatus::kInfeasible);
}

TEST_CASE("a search without work left solves no further network") {
  const Graph graph = tiny_llama();
  const PlanProblem problem = slow_problem(graph, without_reductions());
  NetworkSearch search(problem, work_budget(1));
  // The first network is reduced all the same.
  search.solve({});
  const std::uint64_t spent = search.budget().work_spent();
  CHECK(spent > 0);
  CHECK_FALSE(search.solve({}));
  CHECK(search.budget().work_spent() == spent);
  CHECK(search.out_of_limits());
  const PlanSolution end = std::move(search).finish();
  CHECK(end.work == spent);
  CHECK((end.status == PlanStatus::kOptimal || end.ran_out == RanOut::kWork));
}

TEST_CASE("a stopped search solves no network at all") {
  const Graph graph = two_blocks();
  const PlanProblem problem = slow_problem(graph, overlapped_training());
  std::stop_source source;
  source.request_stop();
  NetworkSearch search(problem, Budget({.seconds = 1e9}, source.get_token()));
  CHECK_FALSE(search.solve({}));
  CHECK(search.budget().work_spent() == 0);
  CHECK(std::move(search).finish().ran_out == RanOut::kInterrupted);
}

TEST_CASE("a search charges the work of the part that it begins with") {
  const Graph graph = tiny_llama();
  const PlanProblem problem = slow_problem(graph, without_reductions());
  NetworkSearch first(problem, work_budget(100'000'000));
  REQUIRE(first.solve({}));
  const PlanSolution part = std::move(first).finish();
  NetworkSearch search(problem, work_budget(100'000'000));
  search.begin_with(part);
  CHECK(search.budget().work_spent() == part.work);
  CHECK(search.incumbent().found());
  // The plan is not one of this search, and its bound is one of the part.
  CHECK_FALSE(search.incumbent().found_here().has_value());
  CHECK(search.incumbent().solution().lower_bound == 0);
}

TEST_CASE("a procedure that is switched off does not run") {
  const Graph graph = tiny_llama();
  PlanOptions options = without_reductions();
  options.switched_off.emplace_back("layer-mix");
  const PlanProblem problem = slow_problem(graph, options);
  NetworkSearch search(problem, work_budget(100'000'000));
  int runs = 0;
  search.run(PlanProcedure::kLayerMix, [&] { ++runs; });
  search.run(PlanProcedure::kLayerResolve, [&] {
    ++runs;
    search.solve({});
  });
  CHECK(runs == 1);
  const auto& records = search.incumbent().solution().procedures;
  CHECK(records[index(PlanProcedure::kLayerMix)].runs == 0);
  CHECK_FALSE(records[index(PlanProcedure::kLayerMix)].enabled);
  const Procedure& ran = records[index(PlanProcedure::kLayerResolve)];
  CHECK(ran.runs == 1);
  CHECK(ran.work > 0);
  CHECK(ran.work == search.budget().work_spent());
  CHECK(ran.improvements == 1);
}

// The plans of a model with layers at several multipliers, for a layer mix.
struct PlansOfMultipliers {
  NetworkOptions network;
  std::vector<SolvedNetwork> plans;
};

PlansOfMultipliers plans_at_multipliers(NetworkSearch& search) {
  PlansOfMultipliers out;
  const std::size_t windows = search.problem().window_loads().size();
  for (const std::int64_t price :
       {std::int64_t{0}, kOverlapMultiplierUnit / 2, kOverlapMultiplierUnit}) {
    out.network.overlap_multipliers.assign(windows, price);
    SolvedNetwork solved = search.solve(out.network);
    REQUIRE(solved);
    out.plans.push_back(std::move(solved));
  }
  return out;
}

TEST_CASE("a mix of one plan solves nothing") {
  const Graph graph = tiny_llama();
  const PlanProblem problem = slow_problem(graph, without_reductions());
  NetworkSearch search(problem, work_budget(2'000'000'000));
  const PlansOfMultipliers known = plans_at_multipliers(search);
  LayerMix mix(search);
  mix.run(known.network);
  const std::uint64_t spent = search.budget().work_spent();
  mix.add(known.plans[0]);
  mix.add(known.plans[0]);  // is not new
  mix.run(known.network);
  CHECK(search.budget().work_spent() == spent);
}

TEST_CASE("a model without layers has no mix") {
  const Graph graph = two_blocks();
  const PlanProblem problem = slow_problem(graph, without_reductions());
  NetworkSearch search(problem, work_budget(2'000'000'000));
  const PlansOfMultipliers known = plans_at_multipliers(search);
  LayerMix mix(search);
  for (const SolvedNetwork& plan : known.plans) mix.add(plan);
  const std::uint64_t spent = search.budget().work_spent();
  mix.run(known.network);
  mix.resolve_layers(known.network);
  CHECK(search.budget().work_spent() == spent);
}

TEST_CASE("free layers are mixed although their operators run twice") {
  const auto graph = value_of(running_graph(
      std::make_shared<const Graph>(tiny_llama()), testing::standard_library(),
      {.recompute = value_of(Recompute::parse("full"))}));
  PlanOptions options = overlapped_training();
  options.layers = Layers::kFree;
  options.switched_off = {"recipe-plans", "joined-dims", "equal-layers"};
  const PlanProblem problem = slow_problem(*graph, options);
  REQUIRE_FALSE(problem.equal_choices().empty());
  const PlanSolution found = solve_plan(problem, work_budget(200'000'000));
  CHECK(found.procedures[index(PlanProcedure::kLayerMix)].runs > 0);
}

TEST_CASE("mixes of layers cost less than the plans that they mix") {
  const Graph graph = layered(6);
  PlanOptions options = overlapped_training();
  options.layers = Layers::kFree;
  int gains = 0;
  for (const double times : {2.0, 4.0, 8.0, 16.0}) {
    CAPTURE(times);
    const PlanProblem problem = slow_problem(graph, options, times);
    NetworkSearch search(problem, work_budget(2'000'000'000));
    const PlansOfMultipliers known = plans_at_multipliers(search);
    std::int64_t least = search.incumbent().solution().evaluation.objective;
    LayerMix mix(search);
    for (const SolvedNetwork& plan : known.plans) mix.add(plan);
    const std::int64_t bound = search.incumbent().solution().lower_bound;
    mix.run(known.network);
    mix.resolve_layers(known.network);
    const PlanSolution& best = search.incumbent().solution();
    CHECK(best.evaluation.objective <= least);
    // A mix restricts the network, so it does not raise the bound.
    CHECK(best.lower_bound == bound);
    const PlanEvaluation judged = evaluate(problem, *best.assignment);
    CHECK(judged.broken == "");
    CHECK(judged.objective == best.evaluation.objective);
    gains += best.evaluation.objective < least ? 1 : 0;
  }
  CHECK(gains > 0);
}

TEST_CASE("a search ends once no plan costs less than the cost to beat") {
  PlanOptions options = without_reductions();
  options.gap = 0;
  const Graph graph = tiny_llama();
  const PlanProblem problem = slow_problem(graph, options);
  const auto search = [&](std::optional<std::int64_t> cost_to_beat) {
    return solve_plan(problem, budget_of(options),
                      {.first_plans = false, .cost_to_beat = cost_to_beat});
  };
  const PlanSolution whole = search(std::nullopt);
  REQUIRE(whole.assignment);
  const std::int64_t cost = whole.evaluation.objective;
  const PlanSolution early = search(1);
  CHECK(early.lower_bound >= 1);
  CHECK(early.lower_bound < whole.lower_bound);
  CHECK(early.work < whole.work);
  // No bound reaches more than the cost.
  const PlanSolution full = search(cost + 1);
  CHECK(full.lower_bound > early.lower_bound);
  CHECK(full.lower_bound <= cost);
  CHECK(full.evaluation.objective == cost);
}

}  // namespace
}  // namespace shardprop
