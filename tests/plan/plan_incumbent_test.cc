// PlanIncumbent keeps the best plan and the best bound of a search.
#include "plan/search/plan_incumbent.h"
#include "plan/search/solve_plan.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <cstdint>

namespace shardprop {
namespace {

using testing::value_of;

PlanProblem dp_tp_problem(const Graph& graph, const PlanOptions& options) {
  return value_of(PlanProblem::create(
      graph, value_of(DeviceMesh::parse("dp=2,tp=2")), default_topology(),
      testing::standard_library(), options));
}

TEST_CASE(
    "the cost is that of the best plan, and a bound within its gap is enough") {
  const Graph graph = test::linear_training(testing::standard_library());
  PlanOptions options;
  options.gap = 0.1;
  const PlanProblem problem = dp_tp_problem(graph, options);
  const PlanSolution solved = solve_plan(problem);
  REQUIRE(solved.assignment);
  const std::int64_t cost = solved.evaluation.objective;
  PlanIncumbent best(problem);
  CHECK_FALSE(best.cost());
  best.take(*solved.assignment);
  CHECK(best.cost() == cost);
  CHECK(best.enough_bound() == cost - cost / 10);
}

}  // namespace
}  // namespace shardprop
