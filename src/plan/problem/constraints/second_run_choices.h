// keep_choices_of_both_runs() leaves both runs of an operator (graph/recompute.h)
// the choices that both have, so that they can choose alike (equal_choices.h).
//
//   relu: R->R, S(0)->S(0), S(1)->S(1)    relu_again, pinned to S(0): S(0)->S(0)
//   relu: S(0)->S(0)                      relu_again: S(0)->S(0)
#pragma once

#include "plan/problem/problem_data.h"

#include <shardprop/base/result.h>

namespace shardprop {

// The operators of `data` must be complete. Two runs without a common choice
// keep their own, unless a pin is the reason. Error: kPinConflict, if the graph
// has pins and two runs have no common choice.
Result<void> keep_choices_of_both_runs(ProblemData& data);

}  // namespace shardprop
