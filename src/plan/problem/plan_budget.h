// The budget of planning, and the errors of a spent one.
//
// make_plan(), weigh_strategies() and solve_plan() make a Budget of the
// options once. Everything below them gets the budget or a child of it, and
// does not read the limits of the options.
#pragma once

#include "base/budget.h"

#include <shardprop/base/error.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/run_control.h>

namespace shardprop {

// Time counts from RunControl::start, or from this call.
inline Budget budget_of(const RunControl& run) {
  return Budget({run.time_limit_seconds, run.work_limit}, run.stop, run.start);
}

RanOut ran_out_of(StoppedBy cause);

// Returns the error (kStopped) of a set-up that was cut off.
Error set_up_cut_off(StoppedBy cause);

}  // namespace shardprop
