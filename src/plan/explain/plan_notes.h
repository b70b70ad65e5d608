// plan_notes() returns facts about a plan that a user may not expect, with
// their cost.
#pragma once

#include "plan/evaluate/plan_solution.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/plan/plan.h>

#include <vector>

namespace shardprop {

// Returns notes on:
//   * a batch smaller than the ranks that should share it;
//   * heads that the mesh dim does not divide;
//   * batch norm whose statistics are exchanged;
//   * operators that run replicated because they have no rule;
//   * equal layers whose parameters have different layouts;
//   * activations of eager execution next to times of a compiled program;
//   * mesh dims that are named for a pipeline.
// Precondition: the nodes and the memory of the plan are complete.
std::vector<PlanNote> plan_notes(const PlanProblem& problem,
                                 const PlanSolution& solution,
                                 const Plan& plan);

}  // namespace shardprop
