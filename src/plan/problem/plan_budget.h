// The budget of planning, and the errors of a spent one.
//
// make_plan(), weigh_strategies() and solve_plan() make a Budget of the
// options once. Everything below them gets the budget or a child of it, and
// does not read the limits of the options.
#pragma once

#include "base/budget.h"

#include <shardprop/base/error.h>
#include <shardprop/plan/ran_out.h>
#include <shardprop/plan/run_control.h>

#include <cstdint>

namespace shardprop {

// Time counts from RunControl::start, or from this call.
inline Budget budget_of(const RunControl& run) {
  return Budget({run.time_limit_seconds, run.work_limit}, run.stop, run.start);
}

// Returns the limits of a step that has `seconds` and `work`. If the budget
// limits the work, the step has no limit of time: the same request then leads to
// the same plan on every machine.
BudgetLimits step_limits(const Budget& budget, double seconds,
                         std::uint64_t work);

RanOut ran_out_of(StoppedBy cause);

// Returns the error (kStopped) of a set-up that was cut off.
Error set_up_cut_off(StoppedBy cause);

}  // namespace shardprop
