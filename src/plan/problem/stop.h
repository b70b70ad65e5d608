// The time limit of planning, and the error if planning is stopped or runs out
// of time before it has an answer.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/plan/plan_options.h>

#include <chrono>
#include <optional>

namespace shardprop {

// Returns the time `seconds` after `start`; empty if clocks cannot represent
// it.
inline std::optional<std::chrono::steady_clock::time_point> deadline(
    std::chrono::steady_clock::time_point start, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double kNever = 3e9;  // seconds: 95 years
  if (seconds >= kNever) return std::nullopt;
  return start + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(seconds));
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// Error: kStopped.
inline Result<void> check_stop(
    const PlanOptions& options,
    const std::optional<std::chrono::steady_clock::time_point>& deadline) {
  if (options.stop.stop_requested()) {
    return fail(ErrorCode::kStopped,
                "planning was stopped before it had found a plan",
                "leave it more time");
  }
  if (deadline && std::chrono::steady_clock::now() >= *deadline) {
    return fail(ErrorCode::kStopped,
                "time ran out before the problem was set up",
                "leave it more time");
  }
  return {};
}

}  // namespace shardprop
