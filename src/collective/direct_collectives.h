// Collectives as messages between members, reductions in rank order: the same
// bits on every engine.
#pragma once

#include "collective/staged_op.h"

namespace shardprop::collective {

Result<void> post_directly(StagedOp& op);

}  // namespace shardprop::collective
