// From a solution to the plan that is handed out.
#pragma once

#include "plan/plan_problem.h"
#include "plan/plan_solution.h"

#include <shardprop/plan/plan.h>

namespace shardprop {

// The plan that a solution says, with copies, schedule, memory and reasons.
Plan assemble_plan(const PlanProblem& problem, const PlanSolution& solution);

}  // namespace shardprop
