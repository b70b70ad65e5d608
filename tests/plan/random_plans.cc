#include "plan/random_plans.h"

#include "support/result_checks.h"

#include <shardprop/solver/solve.h>

#include <utility>
#include <vector>

namespace shardprop::testing {

RandomPlans::RandomPlans(const PlanProblem& problem, std::uint32_t seed)
    : problem_(problem),
      network_(value_of(PlanNetwork::create(problem, {}))),
      draw_(seed) {}

// The network with one variable in `every` at random costs, which are more than
// what all moves take together.
solver::Problem RandomPlans::drawn() {
  constexpr std::int64_t kDear = 1'000'000'000;
  const solver::Problem& known = network_.network();
  solver::ProblemBuilder builder;
  const std::uint32_t every = 1 + draw_() % 8;
  for (std::size_t v = 0; v < known.num_variables(); ++v) {
    const auto own = known.costs(solver::VariableId(v));
    std::vector<std::int64_t> costs(own.begin(), own.end());
    if (draw_() % every == 0) {
      for (std::int64_t& cost : costs) cost += draw_() % kDear;
    }
    builder.add_variable(costs);
  }
  for (const solver::Edge& edge : known.edges()) {
    const solver::Table table = known.table(edge.table);
    builder.add_edge(edge.a, edge.b,
                     builder.add_table(table.rows, table.columns, table.costs));
  }
  return value_of(std::move(builder).build());
}

PlanSolution RandomPlans::next() {
  solver::SolveOptions options;
  options.work_limit = 1'000'000;
  // Little work may lead to no assignment. Then other costs are drawn.
  solver::Solution found;
  while (!found.cost) found = solver::solve(drawn(), options);
  PlanSolution solution;
  solution.status = PlanStatus::kFeasible;
  solution.assignment =
      network_.decode(network_.assignment(std::move(found.assignment)));
  solution.evaluation = evaluate(problem_, *solution.assignment);
  return solution;
}

}  // namespace shardprop::testing
