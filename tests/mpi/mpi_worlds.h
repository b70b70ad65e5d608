// Returns the communicator of this process, for the tests under mpiexec.
#pragma once

#include <shardprop/mpi/mpi_world.h>

namespace shardprop::testing {

Communicator& mpi_world();

}  // namespace shardprop::testing
