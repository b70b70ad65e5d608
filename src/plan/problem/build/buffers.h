// build_buffers() groups the values that alias one buffer. For each buffer it
// lists the layouts that the users read and the layouts between them.
#pragma once

#include "graph/analysis/in_place.h"
#include "plan/problem/build/buffer_forest.h"
#include "plan/problem/problem_data.h"

#include <cstdint>

namespace shardprop {

// Fills values[].buffer, values[].place and buffers of a problem whose
// variables are complete and whose values have their tensors. Errors:
// kProblemTooLarge, kStopped.
Result<void> build_buffers(ProblemData& data, const BufferForest& forest,
                           const InPlace& in_place);

}  // namespace shardprop
