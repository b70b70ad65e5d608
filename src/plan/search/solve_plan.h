// solve_plan() returns the cheapest assignment of a plan problem that it finds,
// and a lower bound of the cost of all assignments.
//
//   PlanProblem problem =
//       *PlanProblem::create(graph, mesh, topology, *library, {});
//   PlanSolution solution = solve_plan(problem);
//   evaluate(problem, *solution.assignment).objective
//       == solution.evaluation.objective;
#pragma once

#include "base/budget.h"
#include "plan/evaluate/plan_solution.h"
#include "plan/problem/plan_problem.h"

namespace shardprop {

// Searches with the rest of the budget, and reads threads and seed from
// problem.options(). The same problem, seed and work limit give the same
// solution on any number of threads, unless the time limit is reached. If a
// stop is requested, the search ends with the best result so far.
PlanSolution solve_plan(const PlanProblem& problem, const Budget& budget,
                        const SearchScope& scope = {});
// Searches with the limits of problem.options().
PlanSolution solve_plan(const PlanProblem& problem);

}  // namespace shardprop
