// Restriction is the choices that each variable of a plan problem keeps.
#pragma once

#include "plan/problem/plan_problem.h"

#include <cstdint>
#include <vector>

namespace shardprop {

struct Restriction {
  // By PlanVariableId: the remaining choices, in ascending order. An empty list
  // keeps all choices of the variable.
  std::vector<std::vector<std::uint32_t>> left;
};

// The restriction that keeps every choice.
inline Restriction no_restriction(const PlanProblem& problem) {
  return {std::vector<std::vector<std::uint32_t>>(problem.variables().size())};
}

}  // namespace shardprop
