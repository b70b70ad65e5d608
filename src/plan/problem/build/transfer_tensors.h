// set_moved_tensors() decides the dtype in which values are moved, and which
// moves may overlap compute.
#pragma once

#include "plan/problem/problem_data.h"

namespace shardprop {

// Sets PlanValue::tensor and PlanValue::hideable of all values. Moves of
// parameters, and of gradients on their way to an output, overlap compute and
// are sent in buckets. Gradients of parameters that are kept in f32 are stored
// and priced in f32. Programs reduce them in f32 and move them in their own
// dtype otherwise (CopyList).
void set_moved_tensors(ProblemData& data);

}  // namespace shardprop
