// Checked mode: members tell each other what they call before any data goes.
#pragma once

#include "mpi/mpi_op.h"

namespace shardprop::mpi {

// post_directly() behind an exchange of what every member calls and what it
// expects of each other. Ends in kCollectiveMismatch, naming two members, when
// they differ.
Result<void> post_matched(MpiOp& op);

}  // namespace shardprop::mpi
