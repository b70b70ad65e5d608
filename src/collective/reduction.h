// Which reductions there are: terms in the order given, the small floats summed
// in f32 and rounded once.
#pragma once

#include <shardprop/placement/placement.h>

namespace shardprop::collective {

// Whether `op` can be run on `dtype`: where it is defined, except for what no
// kernel has: the order of unsigned integers beyond u8, products of complex
// numbers, anything of floats that only travel (the fnuz kinds, e8m0).
bool reduces(ReduceOp op, DType dtype);

}  // namespace shardprop::collective
