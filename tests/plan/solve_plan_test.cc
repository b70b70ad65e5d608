#include "plan/search/solve_plan.h"
#include "plan/exhaustive.h"
#include "plan/invariants.h"
#include "plan/random_graph.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <random>

namespace shardprop {
namespace {

using testing::value_of;

PlanProblem problem_of(const Graph& graph, const OpLibrary& library,
                       const char* mesh, const PlanOptions& options) {
  return value_of(PlanProblem::create(graph, value_of(DeviceMesh::parse(mesh)),
                                      default_topology(), library, options));
}

void check_against_counting(const PlanProblem& problem) {
  const PlanSolution solution = solve_plan(problem);
  REQUIRE(solution.assignment);
  const PlanEvaluation judged = evaluate(problem, *solution.assignment);
  CHECK(judged.broken.empty());
  CHECK(judged.objective == solution.evaluation.objective);
  CHECK(judged.objective == test::Exhaustive(problem).least());
  CHECK(solution.lower_bound == judged.objective);
  CHECK(solution.status == PlanStatus::kOptimal);
}

TEST_CASE("small graphs have the optimum that enumeration finds") {
  const OpLibrary& library = testing::standard_library();
  const Graph training = test::linear_training(library);
  const Graph forward = test::mlp(library);
  const std::pair<const Graph*, std::vector<const char*>> problems[] = {
      {&training, {}},
      {&training, {"x=S(0)"}},
      {&training, {"net.w=S(1)", "gy=S(0)"}},
      {&forward, {}},
      {&forward, {"x=S(0)", "down=S(1)"}},
      {&forward, {"net.w1=S(0)", "act=S(0)"}},
  };
  for (const auto& [graph, pins] : problems) {
    PlanOptions options;
    for (const char* pin : pins) {
      CAPTURE(pin);
      options.pins.push_back(value_of(Pin::parse(pin)));
    }
    CAPTURE(graph->name());
    check_against_counting(problem_of(*graph, library, "2", options));
  }
}

TEST_CASE("random graphs have the optimum that enumeration finds") {
  const OpLibrary& library = testing::standard_library();
  std::mt19937 draw(7);
  constexpr double kMostCombinations = 60'000;
  int counted = 0;
  for (int i = 0; i < 120; ++i) {
    CAPTURE(i);
    const Graph graph = test::random_graph(library, draw, 2 + i % 3);
    PlanOptions options;
    if (i % 3 == 0) options.optimizer = Optimizer::kAdamW;
    const PlanProblem problem =
        problem_of(graph, library, i % 2 == 0 ? "2" : "4", options);
    if (test::Exhaustive(problem).size() > kMostCombinations) continue;
    check_against_counting(problem);
    ++counted;
  }
  CHECK(counted >= 40);
}

TEST_CASE("plans of random graphs keep their invariants on two mesh dims") {
  const OpLibrary& library = testing::standard_library();
  std::mt19937 draw(11);
  for (int i = 0; i < 30; ++i) {
    CAPTURE(i);
    const Graph graph = test::random_graph(library, draw, 6);
    PlanOptions options;
    options.overlap = 0.25 * (i % 3);
    options.optimizer = i % 2 == 0 ? Optimizer::kAdamW : Optimizer::kNone;
    test::check_plan(
        value_of(make_plan(graph, value_of(DeviceMesh::parse("2,2")),
                           default_topology(), library, options)));
  }
}

TEST_CASE("less memory never makes a plan cheaper, and bounds stay bounds") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::linear_training(library);
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  const PlanSolution free =
      solve_plan(problem_of(graph, library, "4", options));
  std::int64_t bound = 0;
  std::int64_t cost = 0;
  bool found = true;
  for (int percent = 100; percent >= 5; percent -= 5) {
    CAPTURE(percent);
    options.memory_limit = free.evaluation.peak_bytes * percent / 100;
    const PlanProblem problem = problem_of(graph, library, "4", options);
    const PlanSolution solution = solve_plan(problem);
    if (!solution.assignment) {
      found = false;
      continue;
    }
    CHECK(found);  // once there is none, there is none below
    const PlanEvaluation judged = evaluate(problem, *solution.assignment);
    CHECK(judged.broken.empty());
    CHECK(judged.peak_bytes <= *options.memory_limit);
    CHECK(solution.lower_bound >= bound);
    CHECK(judged.objective >= bound);
    CHECK(judged.objective >= cost);
    bound = solution.lower_bound;
    cost = judged.objective;
  }
  CHECK_FALSE(found);
}

TEST_CASE("ties are not broken in a plan that costs as much as a known one") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::linear_training(library);
  const auto broken_ties = [&](std::optional<std::int64_t> known_cost) {
    PlanOptions options;
    options.known_cost = known_cost;
    const PlanSolution solution =
        solve_plan(problem_of(graph, library, "4", options));
    REQUIRE(solution.assignment);
    const auto runs = std::find_if(
        solution.procedures.begin(), solution.procedures.end(),
        [](const Procedure& one) { return one.name == "tie-breaking"; });
    REQUIRE(runs != solution.procedures.end());
    return std::pair(solution.evaluation.objective, runs->runs);
  };
  const auto [cost, runs] = broken_ties(std::nullopt);
  CHECK(runs == 1);
  CHECK(broken_ties(cost + 1) == std::pair(cost, runs));
  CHECK(broken_ties(cost) == std::pair(cost, 0 * runs));
}

TEST_CASE("a limit that no plan meets is proven so, with step and bytes") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::linear_training(library);
  PlanOptions options;
  const std::int64_t MiB = 1 << 20;
  options.memory_limit = MiB;
  const PlanSolution solution =
      solve_plan(problem_of(graph, library, "4", options));
  CHECK(solution.status == PlanStatus::kInfeasible);
  REQUIRE(!solution.conflict.empty());
  CHECK(solution.conflict_irreducible);
  for (const auto& step : solution.conflict) CHECK(step.bytes_short > 0);
}

}  // namespace
}  // namespace shardprop
