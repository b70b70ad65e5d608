#include "plan/search/free_layers_bound.h"

#include "plan/network/plan_network.h"
#include "plan/problem/equal_choices.h"

#include <algorithm>
#include <utility>

namespace shardprop {

bool can_bound_free_layers(const PlanProblem& problem,
                           const PlanSolution& found) {
  const bool is_answered =
      found.assignment || found.status == PlanStatus::kInfeasible;
  return is_answered && problem.equal_choices().have_layers();
}

FreeLayersBound free_layers_bound(const PlanProblem& problem,
                                  const PlanSolution& found,
                                  const Budget& budget) {
  const PlanProblem free = problem.with_free_layers();
  PlanNetwork network(free, {});
  NetworkGoals goals{.bounds_only = true};
  if (found.assignment) goals.enough_bound = found.lower_bound;
  SolvedNetwork solved = network.solve(
      {.overlap_multipliers = found.overlap_multipliers}, budget, goals);
  FreeLayersBound out;
  out.work = solved.work;
  out.failure = std::move(solved.failure);
  if (solved.bound <= 0) return out;
  out.nanoseconds = solved.bound;
  // The best plan with equal layers is one of all plans.
  if (found.assignment) {
    out.nanoseconds = std::min(solved.bound, found.evaluation.objective);
  }
  return out;
}

}  // namespace shardprop
