// count_kernels() counts the kernels that a plan launches.
#pragma once

#include "plan/evaluate/plan_assignment.h"

#include <shardprop/plan/plan.h>

namespace shardprop {

PlannedKernels count_kernels(const PlanProblem& problem,
                             const PlanAssignment& assignment);

}  // namespace shardprop
