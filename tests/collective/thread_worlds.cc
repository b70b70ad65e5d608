#include <doctest/doctest.h>
#include <shardprop/collective/thread_world.h>

#include "collective/worlds.h"

#include <chrono>

namespace shardprop::testing {

bool on_ranks(std::int64_t ranks,
              const std::function<void(Communicator&)>& body) {
  // Long enough that only a hang runs into it.
  const CommunicatorOptions patient{.timeout = std::chrono::seconds(20)};
  const auto ends = run_ranks(ranks, patient, [&](Communicator& communicator) {
    body(communicator);
    return Result<void>();
  });
  for (const Result<void>& end : ends) {
    if (!end) FAIL_CHECK(to_string(end.error()));
  }
  return true;
}

bool on_engine_memory(std::int64_t ranks,
                      const std::function<void(Communicator&)>& body) {
  return on_ranks(ranks, body);
}

}  // namespace shardprop::testing
