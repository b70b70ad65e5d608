// Implements collectives as messages between members. Reductions are in rank
// order, so every engine gives the same bits.
#pragma once

#include "collective/staged_op.h"

namespace shardprop::collective {

Result<void> post_directly(StagedOp& op);

}  // namespace shardprop::collective
