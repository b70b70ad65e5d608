// Implements MemoryOps by the kernels of the host or a device. Complex numbers
// are passed as pairs of reals, and refusals become errors.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/kernels/reduce_into.h>
#include <shardprop/kernels/status.h>
#include <shardprop/kernels/strided_copy.h>
#include <shardprop/placement/placement.h>

#include <functional>
#include <span>

namespace shardprop::collective {

// Returns the real dtype of a complex dtype; other dtypes are returned
// unchanged.
DType part_of(DType dtype);
// Returns a complex tensor as a tensor of reals with an additional dim of size
// 2.
LocalTensor as_parts(const LocalTensor& tensor);

// Error: kCollectiveDevice if a tensor with elements is on another device.
Result<void> check_device(Device device, const LocalTensor& from,
                          const LocalTensor& to);
// Errors: kEngine if the device failed, kCollectiveOverlap, kOutOfMemory.
// Another refusal is a bug of this library: InternalError.
Result<void> checked_kernel(const kernels::Status& status);

using CopyKernel =
    std::function<kernels::Status(const kernels::StridedCopyArgs&)>;
using ReduceKernel =
    std::function<kernels::Status(const kernels::ReduceIntoArgs&)>;
Result<void> copy_by(const CopyKernel& kernel, const LocalTensor& from,
                     const LocalTensor& to, double scale);
Result<void> reduce_by(const ReduceKernel& kernel, ReduceOp op,
                       std::span<const LocalTensor> terms,
                       const LocalTensor& out, double scale);

}  // namespace shardprop::collective
