// `failing_machine` makes allocations or thread starts fail when a test asks
// for it. The test binary's own operator new and pthread_create replace the
// system's.
//
//   failing_machine::memory_after(1000);   // the 1001st allocation fails
//   const Solution solution = solve(problem, options);
//   failing_machine::heal();
#pragma once

#include <atomic>
#include <cstdint>

namespace shardprop::failing_machine {

// Return the numbers of allocations and threads since heal().
std::int64_t allocations();
std::int64_t threads();

// After so many allocations one fails.
void memory_after(std::int64_t allocations);
// From now on, allocations of more than so many bytes fail, all of them.
void memory_above(std::int64_t bytes);
// After so many threads, none can be started.
void threads_after(std::int64_t threads);
void heal();

// How memory was refused last, since heal().
enum class Refused {
  kNothing,
  kNeeded,  // with std::bad_alloc
  // With null, to std::nothrow: algorithms that can do without memory ask for
  // it in this way, such as std::stable_sort.
  kSpare,
};
Refused refused();

// Where a thread stops: at its allocation number `at`, until it may go on.
struct Stop {
  std::int64_t at = 0;
  std::atomic<bool> has_stopped{false};
  std::atomic<bool> may_go_on{false};
};
// Has the calling thread stop there, counted from now on; null: nowhere.
void stop_this_thread(Stop* stop);

}  // namespace shardprop::failing_machine
