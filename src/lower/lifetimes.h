// When values are taken for the last time.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/program/spmd_program.h>

namespace shardprop::lowering {

// Puts frees behind last uses; copies are held as long as they were planned to
// be, inputs and outputs throughout. Error: kPlanBroken (a copy that is taken
// when it has been dropped).
Result<void> add_frees(SpmdProgram& program);

}  // namespace shardprop::lowering
