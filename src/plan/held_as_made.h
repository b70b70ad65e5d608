// How long a plan holds each storage as its maker made it.
#pragma once

#include "plan/plan_assignment.h"

#include <cstdint>
#include <vector>

namespace shardprop {

// By storage, the last slot in which it is held as it was made: to the end of
// the last segment that takes it so, or until the last copy of it is made;
// throughout where it is persistent. Reads `copies` and `taken`.
std::vector<std::int64_t> held_as_made(const PlanProblem& problem,
                                       const PlanAssignment& assignment);

}  // namespace shardprop
