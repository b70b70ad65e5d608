// SetUp holds the arguments of PlanProblem::create(): the search space, the
// deadline, and the given choices of judge_plan().
#pragma once

#include <shardprop/plan/plan_space.h>

#include <chrono>
#include <optional>

namespace shardprop {

struct GivenChoices;  // given_choices.h

// PlanProblem::create() fails with kStopped once the deadline has come.
struct SetUp {
  PlanSpace space;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  const GivenChoices* given = nullptr;  // judge_plan()'s
};

}  // namespace shardprop
