// Determines the last use of each value and frees the value after it.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/program/spmd_program.h>

namespace shardprop::lowering {

// Removes views that no step reads. Their users read copies that may be much
// older, so the viewed memory can be freed earlier. A node whose view is
// removed has no result.
void drop_unused_views(SpmdProgram& program);

// Inserts frees after last uses. Copies stay allocated for their planned
// interval; inputs and outputs stay allocated for the entire program. Error:
// kPlanBroken if a step reads a copy after its interval.
Result<void> add_frees(SpmdProgram& program);

}  // namespace shardprop::lowering
