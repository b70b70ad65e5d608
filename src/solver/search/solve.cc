#include <shardprop/solver/solve.h>

#include "base/guard.h"
#include "solver/conflict/conflict.h"
#include "solver/model/solve_budget.h"
#include "solver/search/solver.h"

#include <utility>

namespace shardprop::solver {

Solution solve_plainly(const Problem& problem, const SolveOptions& options) {
  auto solution = guarded([&]() -> Result<Solution> {
    Solution fine;
    {
      Solver solver(problem, options);
      fine = solver.run();
      if (!solver.too_fine() || fine.failure) return fine;
    }
    Budget budget = budget_of(options);
    budget.charge(fine.work);
    SolveOptions left = options;
    left.work_limit = budget.work_left();
    Solution coarse = Solver(problem, left, /*sums_fit=*/true).run();
    coarse.work += fine.work;
    add_runs(coarse.procedures, fine.procedures);
    return coarse;
  });
  if (solution) return *std::move(solution);
  return {.failure = std::move(solution).error()};
}

Solution solve(const Problem& problem, const SolveOptions& options) {
  if (auto valid = validate(options); !valid) {
    return {.failure = std::move(valid).error()};
  }
  Solution solution = solve_plainly(problem, options);
  if (solution.status == Status::kInfeasible && options.explains) {
    auto conflict = guarded(
        [&]() -> Result<Conflict> { return find_conflict(problem, options); });
    if (conflict) {
      solution.conflict = *std::move(conflict);
    } else {
      solution.failure = std::move(conflict).error();
    }
    solution.seconds = budget_of(options).seconds_spent();
  }
  return solution;
}

}  // namespace shardprop::solver
