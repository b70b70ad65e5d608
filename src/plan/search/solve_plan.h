// solve_plan() returns the cheapest assignment of a plan problem that it finds,
// and a lower bound of the cost of all assignments.
//
//   PlanProblem problem =
//       *PlanProblem::create(graph, mesh, topology, *library, {});
//   PlanSolution solution = solve_plan(problem);
//   evaluate(problem, *solution.assignment).objective
//       == solution.evaluation.objective;
#pragma once

#include "plan/problem/plan_problem.h"
#include "plan/evaluate/plan_solution.h"

namespace shardprop {

// Reads limits of time and work, threads and seed from problem.options(). The
// same problem, seed and work limit give the same solution on any number of
// threads, unless the time limit is reached. If a stop is requested, the search
// ends with the best result so far.
PlanSolution solve_plan(const PlanProblem& problem);
// Searches under other limits.
PlanSolution solve_plan(const PlanProblem& problem, const SolveLimits& limits);

}  // namespace shardprop
