// Builds collectives from posts and stages of an MpiOp.
#pragma once

#include "mpi/mpi_op.h"
#include "mpi/mpi_types.h"

namespace shardprop::mpi {

// Uses MPI's own collectives if MPI has them, else messages between members.
// Every choice depends only on facts that all members know, so all members
// choose the same. Only the first posts are collective calls, and all members
// make them in the order of their calls.
Result<void> post_natively(MpiOp& op, const NanOps& nan_ops);

}  // namespace shardprop::mpi
