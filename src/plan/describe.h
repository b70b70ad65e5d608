// What a plan is, in terms of its mesh dims, and what a step computes: the part
// of a Plan that people read first.
#pragma once

#include "plan/plan_problem.h"
#include "plan/plan_solution.h"

#include <shardprop/graph/node.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/plan/plan.h>

namespace shardprop {

OpKind kind_of(const Node& node, const IndexSpace& space);

// Fills plan.roles and plan.work; nodes and values stand already.
// And plan.notes.
void describe(const PlanProblem& problem, const PlanSolution& solution,
              Plan& plan);

}  // namespace shardprop
