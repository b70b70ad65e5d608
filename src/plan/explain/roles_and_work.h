// describe() fills the part of a Plan that people read first: the role of each
// mesh dim and the work of a step.
#pragma once

#include "plan/evaluate/plan_solution.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/graph/node.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/plan/plan.h>

namespace shardprop {

OpKind kind_of(const Node& node, const IndexSpace& space);

// Fills plan.roles, plan.work and plan.notes. Reads plan.nodes and plan.values,
// which must be complete.
void describe(const PlanProblem& problem, const PlanSolution& solution,
              Plan& plan);

}  // namespace shardprop
