// Worlds to run a test's ranks in.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/collective/thread_world.h>

#include <chrono>
#include <functional>

namespace shardprop::testing {

// Long enough that only a hang runs into it.
inline CommunicatorOptions patient() {
  return {.timeout = std::chrono::seconds(20)};
}

// Every rank must end well; `body` may check and throw.
inline void on_ranks(std::int64_t ranks,
                     const std::function<void(Communicator&)>& body) {
  const auto ends =
      run_ranks(ranks, patient(), [&](Communicator& communicator) {
        body(communicator);
        return Result<void>();
      });
  for (const Result<void>& end : ends) {
    if (!end) FAIL_CHECK(to_string(end.error()));
  }
}

}  // namespace shardprop::testing
