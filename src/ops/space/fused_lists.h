// A fused optimizer step works on lists of parameters, gradients and states. Its
// elements do not depend on each other, so each may have its own layout.
//
//   _fused_sgd_([p, q], [g, h], [m, n], lr=0.1)
//     _fused_sgd_([p], [g], [m], lr=0.1), _fused_sgd_([q], [h], [n], lr=0.1)
#pragma once

#include "ops/space/foreach.h"

#include <vector>

namespace shardprop {

// Returns whether `function` is a fused step of PyTorch. An operator of another
// library may have such a name, but its elements may depend on each other.
bool is_fused_step(const FunctionSchema& function);

// Returns the calls of the same operator on lists of one element each, without
// results. A tensor outside the lists, such as `found_inf`, is an operand of all of
// them. Returns an empty list if `op` is not a fused step, or if its lists differ in
// length or have fewer than two elements.
std::vector<ElementCall> fused_calls(const OpSchema& op);

}  // namespace shardprop
