// What a rank does to its own memory between collectives, through the packing
// kernels, where the tensors are.
#pragma once

#include "execute/region_copy.h"

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/placement/placement.h>

namespace shardprop::execute {

// Whether copies may change elements of one dtype into another.
bool is_cast(DType from, DType to);
// Whether they may multiply them.
bool is_scalable(DType dtype);

// The elements of one side of a copy, as a tensor with a dim an axis.
LocalTensor from_view(const LocalTensor& tensor, const RegionCopy& copy);
LocalTensor to_view(const LocalTensor& tensor, const RegionCopy& copy);

// Runs copies, casting to the dtype of `to` and multiplying by `scale`.
// Preconditions: is_cast() where dtypes differ, is_scalable() where it is
// not 1.
Result<void> run_copies(const RegionCopies& copies, const LocalTensor& from,
                        const LocalTensor& to, double scale = 1);
// The same of whole tensors of one shape.
Result<void> copy_all(const LocalTensor& from, const LocalTensor& to,
                      double scale = 1);
// Multiplies every element. Precondition: is_scalable().
Result<void> scale_in_place(const LocalTensor& tensor, double scale);
// Fills with what leaves the other operand of `op` as it is: 1 for a product,
// 0 for sum and bxor.
Result<void> fill_neutral(const LocalTensor& tensor, ReduceOp op);

}  // namespace shardprop::execute
