// StopSignal tells a running round to stop: the deadline has passed or a stop
// was requested.
#pragma once

#include <shardprop/solver/solve.h>

#include <chrono>
#include <optional>
#include <stop_token>

namespace shardprop::solver {

struct StopSignal {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::stop_token stop;

  // Returns the cause; nullopt if there is none.
  std::optional<StoppedBy> cause() const {
    if (stop.stop_requested()) return StoppedBy::kRequest;
    if (deadline && std::chrono::steady_clock::now() >= *deadline) {
      return StoppedBy::kTime;
    }
    return std::nullopt;
  }
  bool raised() const { return cause().has_value(); }
};

inline StopSignal stop_signal(const SolveOptions& options) {
  using Clock = std::chrono::steady_clock;
  // Beyond a century, the sum would exceed the clock's range.
  constexpr double kNever = 3e9;
  StopSignal signal{std::nullopt, options.stop};
  if (options.time_limit_seconds < kNever) {
    signal.deadline =
        options.start +
        std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(options.time_limit_seconds));
  }
  return signal;
}

}  // namespace shardprop::solver
