// earlier_assignment() reads an earlier plan of the same graph as an assignment of a
// plan problem, so that a search can judge it without solving anything.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/problem/plan_problem.h"
#include "plan/search/parts/earlier_plan_match.h"

#include <shardprop/plan/plan.h>

#include <optional>

namespace shardprop {

// Returns the plan with its copies. The result is null if the plan is of another
// graph or mesh, if the problem does not have all of its choices and copies, or if
// it gives equal layers other choices.
std::optional<PlanAssignment> earlier_assignment(const PlanProblem& problem,
                                                 const Plan& earlier,
                                                 const EarlierPlanMatch& match);

}  // namespace shardprop
