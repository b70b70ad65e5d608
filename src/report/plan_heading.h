// The first lines of a plan's text: graph, mesh and proof, or the reason why
// there is no plan.
//
//   llama (28 ops) on tp=2 (2 ranks), h100
//   optimal: 1.20 ms a step
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

std::string plan_heading(const Plan& plan);

}  // namespace shardprop
