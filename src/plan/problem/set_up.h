// SetUp holds the arguments of PlanProblem::create(): the search space, the
// budget, and the given choices of judge_plan().
#pragma once

#include "base/budget.h"

#include <shardprop/plan/plan_space.h>

namespace shardprop {

struct GivenChoices;  // given_choices.h

// PlanProblem::create() fails with kStopped once its budget is cut off. It
// does not count work.
struct SetUp {
  PlanSpace space;
  Budget budget;
  const GivenChoices* given = nullptr;  // judge_plan()'s
};

}  // namespace shardprop
