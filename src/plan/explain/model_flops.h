// model_flops() counts the useful arithmetic of a step, the numerator of MFU.
//
// The convention is that of Megatron-LM and PaLM: per token 6 x (active
// parameters - input embedding), plus causal attention with a backward pass of
// twice its forward pass. Recomputation, padding of experts to their capacity
// and matmuls with one-hot matrices are excluded. An inference counts its
// forward pass alone.
//
//   Llama 3 8B, 8192 tokens     6 x 7.504e9 x 8192 + 3 x 1.759e13 = 4.216e14
#pragma once

#include "plan/problem/plan_problem.h"

namespace shardprop {

double model_flops(const PlanProblem& problem);

}  // namespace shardprop
