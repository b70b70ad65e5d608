// Plans that nobody would choose: the plan problem of a graph with the costs of
// some of its choices drawn at random, solved again and again.
#pragma once

#include "plan/explain/assemble_plan.h"
#include "plan/network/plan_network.h"
#include "plan/problem/plan_problem.h"
#include "plan/search/solve_plan.h"

#include <cstdint>
#include <memory>
#include <random>

namespace shardprop::testing {

class RandomPlans {
 public:
  // `problem` must outlive it.
  RandomPlans(const PlanProblem& problem, std::uint32_t seed);

  // For assemble_plan(); of any memory. Some operators take whatever strategy
  // they drew, and every value the copies that follow from it.
  PlanSolution next();

 private:
  solver::Problem drawn();

  const PlanProblem& problem_;
  PlanNetwork network_;
  std::mt19937 draw_;
};

}  // namespace shardprop::testing
