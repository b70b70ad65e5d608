// PlanIncumbent keeps the best plan and the best bound of a search.
#include "plan/search/plan_incumbent.h"
#include "plan/search/parts/first_plans.h"
#include "plan/search/parts/restricted_problem.h"
#include "plan/search/solve_plan.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

using testing::value_of;

PlanProblem dp_tp_problem(const Graph& graph, const PlanOptions& options) {
  return value_of(PlanProblem::create(
      graph, value_of(DeviceMesh::parse("dp=2,tp=2")), default_topology(),
      testing::standard_library(), options));
}

TEST_CASE("a bound of the gap or of the known cost ends a search") {
  const Graph graph = test::linear_training(testing::standard_library());
  PlanOptions options;
  options.gap = 0.1;
  const PlanSolution solved = solve_plan(dp_tp_problem(graph, options));
  REQUIRE(solved.assignment);
  const std::int64_t cost = solved.evaluation.objective;
  const auto bounds = [&](std::optional<std::int64_t> known_cost) {
    options.known_cost = known_cost;
    const PlanProblem problem = dp_tp_problem(graph, options);
    PlanIncumbent best(problem);
    CHECK(best.cost_to_beat() == known_cost);
    best.take(*solved.assignment);
    return std::pair(best.enough_bound(), best.cost_to_beat());
  };
  const std::int64_t within = cost - cost / 10;
  CHECK(bounds(std::nullopt) == std::pair(within, std::optional(cost)));
  CHECK(bounds(cost + 1) == std::pair(within, std::optional(cost)));
  CHECK(bounds(cost / 2) == std::pair(cost / 2, std::optional(cost / 2)));
}

TEST_CASE("a part of a problem has a known cost of its own") {
  const Graph graph = test::linear_training(testing::standard_library());
  PlanOptions options;
  options.gap = 0.1;
  options.known_cost = 7;
  const PlanProblem problem = dp_tp_problem(graph, options);
  const auto options_of = [&](const RestrictedProblem::Goal& goal) {
    const RestrictedProblem part(problem, no_restriction(problem), goal);
    const PlanOptions& own = part.problem().options();
    return std::pair(own.gap, own.known_cost);
  };
  CHECK(options_of({}) == std::pair(0.1, std::optional<std::int64_t>()));
  CHECK(options_of({.gap = 0.2, .known_cost = 9}) ==
        std::pair(0.2, std::optional<std::int64_t>(9)));
}

}  // namespace
}  // namespace shardprop
