// The kernels of a plan, counted one by one.
#pragma once

#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_assignment.h>

namespace shardprop {

PlannedKernels count_kernels(const PlanProblem& problem,
                             const PlanAssignment& assignment);

}  // namespace shardprop
