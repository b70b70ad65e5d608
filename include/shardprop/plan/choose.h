// choose(): a choice for every variable of a plan problem.
//
// First form: least cost in schedule order, looking one edge ahead, from
// several starts; then every variable is chosen anew given its neighbours until
// nothing changes, and the border between two layouts is moved as far as it
// pays (src/plan/local_search.h). Where the memory limit is broken, bytes that
// live at the peak are given a price, which is raised until the plan fits or
// the attempts are spent. A solver of the whole graph takes its place behind
// this interface.
//
//   PlanProblem problem = *PlanProblem::create(...);
//   PlanChoice choice = *choose(problem);
//   objective_nanoseconds(problem, choice.choices) == choice.objective
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/plan/plan_problem.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

struct PlanChoice {
  std::vector<std::uint32_t> choices;  // by PlanVariableId
  // Nanoseconds; kUnreachable and more where pins leave no way.
  std::int64_t objective = 0;
  // No plan costs less: the sum of least unary costs.
  std::int64_t lower_bound = 0;
  bool feasible = false;  // reachable, and within the memory limit
};

// Takes limits of time and work from problem.options(); runs on one thread and
// draws nothing at random, so threads and seed make no difference. Same problem
// and work limit, and no time limit reached: same choice.
PlanChoice choose(const PlanProblem& problem);

// The cost of an assignment by the definition in plan_problem.h, from nothing
// but the problem.
std::int64_t objective_nanoseconds(const PlanProblem& problem,
                                   std::span<const std::uint32_t> choices);

}  // namespace shardprop
