#include "plan/search/free_layers_bound.h"

#include "plan/network/plan_network.h"
#include "plan/problem/equal_choices.h"

#include <algorithm>
#include <utility>

namespace shardprop {

bool can_bound_free_layers(const PlanProblem& problem,
                           const PlanSolution& found) {
  return found.assignment && problem.equal_choices().have_layers();
}

FreeLayersBound free_layers_bound(const PlanProblem& problem,
                                  const PlanSolution& found,
                                  const Budget& budget) {
  const PlanProblem free = problem.with_free_layers();
  PlanNetwork network(free, {});
  SolvedNetwork solved =
      network.solve({.overlap_multipliers = found.overlap_multipliers}, budget,
                    {.enough_bound = found.lower_bound, .bounds_only = true});
  FreeLayersBound out;
  out.work = solved.work;
  out.failure = std::move(solved.failure);
  if (solved.bound <= 0) return out;
  // The best plan with equal layers is one of all plans.
  out.nanoseconds = std::min(solved.bound, found.evaluation.objective);
  return out;
}

}  // namespace shardprop
