// The error of planning that was stopped before there was an answer.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/plan/plan_options.h>

namespace shardprop {

// Error: kStopped.
inline Result<void> check_stop(const PlanOptions& options) {
  if (!options.stop.stop_requested()) return {};
  return fail(ErrorCode::kStopped,
              "planning was stopped before it had found a plan",
              "leave it more time");
}

}  // namespace shardprop
