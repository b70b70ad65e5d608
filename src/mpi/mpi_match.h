// In checked mode, members exchange descriptions of their calls before any data
// is sent.
#pragma once

#include "mpi/mpi_op.h"

namespace shardprop::mpi {

// Exchanges the calls of all members and their expectations of each other, then
// runs post_directly(). Ends in kCollectiveMismatch, which names two members,
// if they differ.
Result<void> post_matched(MpiOp& op);

}  // namespace shardprop::mpi
