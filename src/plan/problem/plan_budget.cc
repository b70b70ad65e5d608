#include "plan/problem/plan_budget.h"

#include <string>

namespace shardprop {

BudgetLimits step_limits(const Budget& budget, double seconds,
                         std::uint64_t work) {
  BudgetLimits limits{.work = work};
  if (!budget.work_limit()) limits.seconds = seconds;
  return limits;
}

RanOut ran_out_of(StoppedBy cause) {
  switch (cause) {
    case StoppedBy::kTime:
      return RanOut::kTime;
    case StoppedBy::kWork:
      return RanOut::kWork;
    case StoppedBy::kRequest:
      return RanOut::kInterrupted;
  }
  return RanOut::kNothing;
}

Error set_up_cut_off(StoppedBy cause) {
  const std::string message =
      cause == StoppedBy::kRequest
          ? "planning was stopped before it had found a plan"
          : "time ran out before the problem was set up";
  return {ErrorCode::kStopped, message, {}, {}, "leave it more time"};
}

}  // namespace shardprop
