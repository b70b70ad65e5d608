// Operations of a rank on its own memory between collectives. Errors: the
// errors of MemoryOps.
#pragma once

#include "execute/region_copy.h"

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/collective/memory_ops.h>
#include <shardprop/placement/placement.h>

namespace shardprop::execute {

// Returns the elements of one side of a copy, as a tensor with one dim per
// axis.
LocalTensor from_view(const LocalTensor& tensor, const RegionCopy& copy);
LocalTensor to_view(const LocalTensor& tensor, const RegionCopy& copy);

// Runs copies, casts to the dtype of `to` and multiplies by `scale`.
// Preconditions: is_cast() if the dtypes differ, is_scalable() if `scale` is
// not 1.
Result<void> run_copies(MemoryOps& memory, const RegionCopies& copies,
                        const LocalTensor& from, const LocalTensor& to,
                        double scale = 1);
// Multiplies every element. Precondition: is_scalable().
Result<void> scale_in_place(MemoryOps& memory, const LocalTensor& tensor,
                            double scale);
// Fills the tensor with the neutral element of `op`: 1 for a product, 0 for sum
// and bxor.
Result<void> fill_neutral(MemoryOps& memory, const LocalTensor& tensor,
                          ReduceOp op);

}  // namespace shardprop::execute
