// Worlds to run a test's ranks in: threads (thread_worlds.cc) or, in the MPI
// tests, the processes that mpiexec has started.
#pragma once

#include <shardprop/collective/communicator.h>

#include <functional>

namespace shardprop::testing {

// Runs `body` on ranks 0 to ranks-1. Every rank must end without an error;
// `body` may check and throw. False if there are fewer ranks: `body` was not
// run.
bool on_ranks(std::int64_t ranks,
              const std::function<void(Communicator&)>& body);

// The same where tensors are in the engine's own memory, which the host may not
// be able to touch (values.h: moved_to(), moved_back()).
bool on_engine_memory(std::int64_t ranks,
                      const std::function<void(Communicator&)>& body);

}  // namespace shardprop::testing
