// held_as_made() computes how long a plan keeps each buffer in the layout in
// which it was produced.
#pragma once

#include "plan/evaluate/plan_assignment.h"

#include <cstdint>
#include <vector>

namespace shardprop {

// Returns, by buffer, the last slot in which it is kept as it was produced.
// This slot is the maximum of
//   1. the end of the last segment with a use that reads it as produced,
//   2. the slot of the last copy that is made directly from it, and
//   3. the end of the program if the buffer is persistent.
// Reads `copies` and `read` of the assignment.
std::vector<std::int64_t> read_as_produced(const PlanProblem& problem,
                                           const PlanAssignment& assignment);

}  // namespace shardprop
