// The first lines of a plan's text state the graph, the mesh and the proof, or the
// reason for a missing plan.
//
//   llama (28 ops) on tp=2 (2 ranks), h100
//   optimal: 1.20 ms a step
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

std::string plan_heading(const Plan& plan);

}  // namespace shardprop
