// What a user may not expect of a plan, and what it costs, in sentences.
#pragma once

#include "plan/plan_problem.h"
#include "plan/solve_plan.h"

#include <shardprop/plan/plan.h>

#include <string>
#include <vector>

namespace shardprop {

// A batch smaller than what it is to be split over, heads that do not divide,
// batch norm whose statistics are exchanged, operators that run replicated for want of a rule, equal layers that are laid
// out differently. The nodes of the plan stand already.
std::vector<std::string> plan_notes(const PlanProblem& problem,
                                    const PlanSolution& solution,
                                    const Plan& plan);

}  // namespace shardprop
