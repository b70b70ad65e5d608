// By NCCL's collectives where it has them, else between members.
#pragma once

#include "nccl/nccl_hub.h"

namespace shardprop::nccl {

// What is chosen depends only on what all members know.
Result<void> post(NcclOp& op);

}  // namespace shardprop::nccl
