#pragma once

#include <vector>

#include <shardprop/kernels/reduce_into.h>
#include <shardprop/kernels/status.h>
#include <shardprop/kernels/strided_copy.h>

#include "box.h"
#include "operand.h"

namespace shardprop::kernels {

// Checks a call and appends its box, if there is work to do.
Status plan_strided_copy(const StridedCopyArgs& args, BoxList* boxes);
Status plan_fill(const FillArgs& args, BoxList* boxes);

// The common index space of a reduction. Operand 0 is the output; the others
// are the inputs in order.
struct ReducePlan {
  int rank;
  std::array<std::int64_t, kMaxDims> sizes;
  std::vector<Operand> operands;  // strides belong to `sizes`

  std::int64_t count() const;
};

// Checks a call and merges dims that continue each other in all operands. The
// rank is at least 1 and the sizes are positive, unless count() is 0.
Status plan_reduce_into(const ReduceIntoArgs& args, ReducePlan* plan);

}  // namespace shardprop::kernels
