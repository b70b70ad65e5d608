// solve_plan(): the cheapest assignment of a plan problem, and how far from the
// best it can be at most.
//
//   PlanProblem problem =
//       *PlanProblem::create(graph, mesh, topology, *library, {});
//   PlanSolution solution = solve_plan(problem);
//   evaluate(problem, *solution.assignment).objective
//       == solution.evaluation.objective;
#pragma once

#include "plan/plan_problem.h"
#include "plan/plan_solution.h"

namespace shardprop {

// Takes limits of time and work, threads and seed from problem.options(). Same
// problem, seed and work limit, and no time limit reached: same solution, on
// any number of threads.
// Ends with the best so far once a stop is requested.
PlanSolution solve_plan(const PlanProblem& problem);
// With other limits, because setting up has taken some of them.
PlanSolution solve_plan(const PlanProblem& problem, const SolveLimits& limits);

}  // namespace shardprop
