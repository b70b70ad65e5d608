// assemble_plan() turns a solution into the `Plan` that the caller receives.
#pragma once

#include "plan/evaluate/plan_solution.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/plan/plan.h>

namespace shardprop {

// Returns the plan of a solution, with copies, schedule, memory and reasons.
Plan assemble_plan(const PlanProblem& problem, const PlanSolution& solution);

}  // namespace shardprop
