// saved_assignment() reads the copies of a saved plan as an assignment of a plan
// problem of the same graph.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/problem/plan_problem.h"
#include "plan/saved/read/saved_choices.h"

#include <shardprop/plan/plan.h>

#include <cstdint>
#include <vector>

namespace shardprop {

// Returns the assignment with the copies of the plan. `chosen` has a choice for each
// variable of `problem`, and `choices` are those of the plan (choices_of()).
// Error: kPlanFile, if the problem has no such copies. evaluate() tells whether the
// assignment is consistent.
Result<PlanAssignment> saved_assignment(const PlanProblem& problem,
                                        const Plan& saved,
                                        const SavedChoices& choices,
                                        std::vector<std::uint32_t> chosen);

}  // namespace shardprop
