// How values are moved: in which dtype, and which of them beside compute.
#pragma once

#include "plan/problem_data.h"

namespace shardprop {

// Sets PlanValue::tensor and PlanValue::hideable of all values. Parameters, and
// gradients on their way out, move beside compute and in buckets; a gradient of
// a parameter that is kept in f32 moves, and lies, in f32.
void set_moved_tensors(ProblemData& data);

}  // namespace shardprop
