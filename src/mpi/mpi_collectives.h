// Collectives as posts and stages of an MpiOp.
#pragma once

#include "mpi/mpi_op.h"
#include "mpi/mpi_types.h"

namespace shardprop::mpi {

// By MPI's own collectives where it has them, else between members. Every
// choice made here depends only on what all members know, so that all choose
// alike; and nothing but the first posts, which all members make in the order
// of their calls, are collective calls.
Result<void> post_natively(MpiOp& op, const NanOps& nan_ops);

}  // namespace shardprop::mpi
