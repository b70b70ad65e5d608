// Tie-breaking: among plans of equal cost, prefer less memory, then fewer
// moves, then the same layouts for equal layers.
#pragma once

#include "plan/evaluate/plan_solution.h"
#include "plan/network/plan_network.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

// Returns groups of two or more parameters, as variables, that have the same
// place in repeated layers. Their names differ in components that are numbers
// (layers.0.w1, layers.1.w1), and their choices are the same.
std::vector<std::vector<PlanVariableId>> like_parameters(
    const PlanProblem& problem);

// Returns whether all parameters of each group have the same choice.
bool is_uniform(const PlanProblem& problem, const PlanAssignment& plan);

// Replaces the assignment by one that costs no more, if the solver finds one.
// Solves the problem again, with costs first and preferences second, under
// `how` each time. Overlapped time has the given multipliers
// (NetworkOptions::overlap_multipliers). `network` is one of the problem that
// can have them; null if it is to be built.
//
// If parameters of equal layers still have different layouts, it sets
// solution.uniform_costs_more. This is the added cost of the best plan in which
// they have the same layouts, if the solver found one. Precondition: there is
// an assignment.
void break_ties(const PlanProblem& problem,
                const std::vector<std::int64_t>& overlap_multipliers,
                std::optional<PlanNetwork> network,
                const solver::SolveOptions& how, PlanSolution& solution);

// Sets solution.uniform_costs_more from `uniform`, the cost of a plan in which
// equal layers have the same layouts, unless tie-breaking found a cheaper one. Does
// nothing without an assignment, or if it has such layouts itself.
inline void note_uniform(const PlanProblem& problem, std::int64_t uniform,
                         PlanSolution& solution) {
  if (!solution.assignment || is_uniform(problem, *solution.assignment)) return;
  const std::int64_t more = uniform - solution.evaluation.objective;
  solution.uniform_costs_more =
      std::min(solution.uniform_costs_more.value_or(more), more);
}

// Returns a solution that fits the memory limit and costs no more than `like`,
// which need not fit. It prefers small inputs and results. It has no assignment
// if none is found. Its `work` is that of this search, and its `left_out` lists the
// parts that were refused on the way.
PlanSolution small_solution(const PlanProblem& problem,
                            const solver::SolveOptions& how, PlanSolution like);

}  // namespace shardprop
