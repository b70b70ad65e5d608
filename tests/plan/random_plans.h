// Generates random plans: it samples the costs of some choices of a graph's
// plan problem and solves the problem again and again.
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

  // Returns a solution for assemble_plan(), without a memory limit. Some
  // operators get a random strategy, and every value gets the copies that the
  // strategies need.
  PlanSolution next();

 private:
  solver::Problem drawn();

  const PlanProblem& problem_;
  PlanNetwork network_;
  std::mt19937 draw_;
};

}  // namespace shardprop::testing
