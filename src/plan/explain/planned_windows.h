// `add_loads()` states in a plan how far its transfers overlap.
#pragma once

#include "plan/evaluate/plan_assignment.h"

#include <shardprop/plan/plan.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace shardprop {

// Adds the windows to the plan, and takes the exposed time of each load off the
// overlapped time of its copies. `loads` is PlanEvaluation::windows. `windows`
// has the overlap window of each copy of the plan; it is empty for a copy that
// overlaps nothing.
void add_loads(const PlanProblem& problem, const std::vector<WindowLoad>& loads,
               const std::vector<std::optional<std::size_t>>& windows,
               Plan& plan);

}  // namespace shardprop
