#include "plan/search/free_layers_bound.h"

#include "plan/network/plan_network.h"
#include "plan/problem/equal_choices.h"

#include <algorithm>

namespace shardprop {

bool can_bound_free_layers(const PlanProblem& problem,
                           const PlanSolution& found) {
  return found.assignment && problem.equal_choices().have_layers();
}

std::optional<std::int64_t> free_layers_bound(const PlanProblem& problem,
                                              const PlanSolution& found,
                                              const Budget& budget) {
  const PlanProblem free = problem.with_free_layers();
  PlanNetwork network(free, {});
  const SolvedNetwork solved =
      network.solve({.overlap_multipliers = found.overlap_multipliers}, budget,
                    {.enough_bound = found.lower_bound, .bounds_only = true});
  if (solved.bound <= 0) return std::nullopt;
  // The best plan with equal layers is one of all plans.
  return std::min(solved.bound, found.evaluation.objective);
}

}  // namespace shardprop
