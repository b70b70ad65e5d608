// Worlds to run a test's ranks in: threads (thread_worlds.cc) or, in the MPI
// tests, the processes that mpiexec has started.
#pragma once

#include <shardprop/collective/communicator.h>

#include <functional>

namespace shardprop::testing {

// Runs `body` on ranks 0 to ranks-1, each of which must end well; it may check
// and throw. False where there are not so many ranks: nothing was run.
bool on_ranks(std::int64_t ranks,
              const std::function<void(Communicator&)>& body);

}  // namespace shardprop::testing
