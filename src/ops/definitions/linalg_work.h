// What linear algebra computes of each matrix.
#pragma once

#include "ops/op_call.h"

namespace shardprop {

// Refines an index space by the floating point operations of its operator: by
// the cubes of the sides of its matrices, and by the columns of right sides.
// Nothing where the operator is not listed.
//
//   cholesky of f32[8,100,100]   333333 for each of 8 points
void count_linalg_work(const OpCall& call, IndexSpace& space);

}  // namespace shardprop
