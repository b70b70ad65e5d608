// What the bytes that a rank holds in one slot are of.
#pragma once

#include "plan/plan_assignment.h"

#include <shardprop/plan/plan.h>

#include <cstdint>

namespace shardprop {

// The bytes of bytes_by_slot() in that slot, by kind; `peak_bytes` is their
// sum.
PlanMemory memory_at(const PlanProblem& problem,
                     const PlanAssignment& assignment, std::int64_t slot);

}  // namespace shardprop
