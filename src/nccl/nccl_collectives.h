// Uses NCCL's collectives if NCCL has them, else messages between members.
#pragma once

#include "nccl/nccl_hub.h"

namespace shardprop::nccl {

// The choice depends only on facts that all members know.
Result<void> post(NcclOp& op);

}  // namespace shardprop::nccl
