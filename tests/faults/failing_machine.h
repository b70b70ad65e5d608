// A machine that runs out of memory or threads when a test says so. The test
// binary's own operator new and pthread_create stand in front of the system's.
//
//   failing_machine::memory_after(1000);   // the 1001st allocation fails
//   const Solution solution = solve(problem, options);
//   failing_machine::heal();
#pragma once

#include <cstdint>

namespace shardprop::failing_machine {

// Allocations and threads since heal().
std::int64_t allocations();
std::int64_t threads();

// After so many allocations one fails.
void memory_after(std::int64_t allocations);
// From now on, allocations of more than so many bytes fail, all of them.
void memory_above(std::int64_t bytes);
// After so many threads, none can be started.
void threads_after(std::int64_t threads);
void heal();

}  // namespace shardprop::failing_machine
