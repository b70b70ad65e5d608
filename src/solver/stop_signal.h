// When to stop in the middle of a round: the deadline has come or the caller
// has cancelled.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

namespace shardprop::solver {

struct StopSignal {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  const std::atomic<bool>* cancelled = nullptr;

  bool raised() const {
    return (cancelled != nullptr &&
            cancelled->load(std::memory_order_relaxed)) ||
           (deadline.has_value() &&
            std::chrono::steady_clock::now() >= *deadline);
  }
};

}  // namespace shardprop::solver
