// with_shared_variables() makes one variable of the network of those that
// choose alike (problem/equal_choices.h).
//
//   layers.0.w -- mm_0    layers.1.w -- mm_1    two variables, two edges each
//   layers.w == mm                              one each, an edge that counts
//                                               twice
//
// Live intervals are one variable if their buffers have the same class,
// producers that choose alike, and readers that choose alike. Accumulators are
// one if their gradients and parameters choose alike. An edge between layers
// may become an edge from a variable to itself.
//
// The first layer gives a variable its place in the order of the network.
#pragma once

#include "plan/network/network_structure.h"
#include "plan/problem/plan_problem.h"

namespace shardprop {

NetworkStructure with_shared_variables(const PlanProblem& problem,
                                       NetworkStructure structure);

}  // namespace shardprop
