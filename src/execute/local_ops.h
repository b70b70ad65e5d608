// What a rank does to its own memory between collectives, where that is.
// Errors: those of MemoryOps.
#pragma once

#include "execute/region_copy.h"

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/collective/memory_ops.h>
#include <shardprop/placement/placement.h>

namespace shardprop::execute {

// The elements of one side of a copy, as a tensor with a dim an axis.
LocalTensor from_view(const LocalTensor& tensor, const RegionCopy& copy);
LocalTensor to_view(const LocalTensor& tensor, const RegionCopy& copy);

// Runs copies, casting to the dtype of `to` and multiplying by `scale`.
// Preconditions: is_cast() where dtypes differ, is_scalable() where it is
// not 1.
Result<void> run_copies(MemoryOps& memory, const RegionCopies& copies,
                        const LocalTensor& from, const LocalTensor& to,
                        double scale = 1);
// Multiplies every element. Precondition: is_scalable().
Result<void> scale_in_place(MemoryOps& memory, const LocalTensor& tensor,
                            double scale);
// Fills with what leaves the other operand of `op` as it is: 1 for a product,
// 0 for sum and bxor.
Result<void> fill_neutral(MemoryOps& memory, const LocalTensor& tensor,
                          ReduceOp op);

}  // namespace shardprop::execute
