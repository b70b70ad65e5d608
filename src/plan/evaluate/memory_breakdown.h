// memory_at() breaks down a rank's live bytes in one slot by kind.
#pragma once

#include "plan/evaluate/plan_assignment.h"

#include <shardprop/plan/plan.h>

#include <cstdint>

namespace shardprop {

// Returns the bytes of bytes_by_slot() in that slot, by kind. `peak_bytes` is
// their sum.
PlanMemory memory_at(const PlanProblem& problem,
                     const PlanAssignment& assignment, std::int64_t slot);

}  // namespace shardprop
