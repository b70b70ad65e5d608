// The supported reductions. Terms are reduced in the given order; small floats
// are summed in f32 and rounded once.
#pragma once

#include <shardprop/placement/placement.h>

namespace shardprop::collective {

// True if `op` is defined on `dtype` and a kernel exists. No kernel has these:
// * the order of unsigned integers beyond u8,
// * products of complex numbers,
// * any reduction of floats that are only transported (the fnuz kinds, e8m0).
bool reduces(ReduceOp op, DType dtype);

}  // namespace shardprop::collective
