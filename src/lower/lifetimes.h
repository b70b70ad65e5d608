// When values are taken for the last time.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/program/spmd_program.h>

namespace shardprop::lowering {

// Leaves out views that no step takes: their users take copies, which may have
// been made long before, and what they view need not be held any more. A node
// whose view is left out has no result.
void drop_unused_views(SpmdProgram& program);

// Puts frees behind last uses; copies are held as long as they were planned to
// be, inputs and outputs throughout. Error: kPlanBroken (a copy that is taken
// when it has been dropped).
Result<void> add_frees(SpmdProgram& program);

}  // namespace shardprop::lowering
