// The budget of planning, and what it says once it is spent.
//
// make_plan(), weigh_strategies() and solve_plan() make a Budget of the
// options once. Everything below them gets the budget or a child of it, and
// does not read the limits of the options.
#pragma once

#include "base/budget.h"

#include <shardprop/base/error.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

namespace shardprop {

// Time counts from PlanOptions::start, or from this call.
inline Budget budget_of(const PlanOptions& options) {
  return Budget({options.time_limit_seconds, options.work_limit}, options.stop,
                options.start);
}

RanOut ran_out_of(StoppedBy cause);

// Returns the error (kStopped) of a set-up that was cut off.
Error set_up_cut_off(StoppedBy cause);

}  // namespace shardprop
