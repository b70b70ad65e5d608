// The floating point operations of linear algebra per matrix.
#pragma once

#include "ops/op_call.h"

namespace shardprop {

// Refines an index space by the floating point operations of its operator. They
// depend on the sizes of its matrices and on the number of columns of right
// sides. An operator that is not listed is unchanged.
//
//   cholesky of f32[8,100,100]   333333 for each of 8 points
void count_linalg_work(const OpCall& call, IndexSpace& space);

}  // namespace shardprop
