// The copies that an assignment asks for, and when each is made and dropped.
#pragma once

#include <shardprop/plan/plan_problem.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

struct NeededCopy {
  ValueId value;
  LayoutId src;
  LayoutId dst;
  // Node indices; the number of nodes stands for the end. A copy for a tie or
  // an output is made as soon as its value is.
  std::int64_t made_at = 0;
  std::int64_t last_use = 0;
  std::vector<PlanUse> users;
};

// In order of made_at, then of values.
std::vector<NeededCopy> needed_copies(const PlanProblem& problem,
                                      std::span<const std::uint32_t> choices);

// The layout an assignment gives to an operand of a variable.
LayoutId layout_at(const PlanProblem& problem,
                   std::span<const std::uint32_t> choices,
                   PlanVariableId variable, std::size_t operand);

}  // namespace shardprop
