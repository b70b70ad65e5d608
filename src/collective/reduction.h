// Reductions as the kernels do them: terms in the order given, the small floats
// summed in f32 and rounded once.
#pragma once

#include <shardprop/collective/local_tensor.h>
#include <shardprop/kernels/reduce_into.h>
#include <shardprop/kernels/status.h>
#include <shardprop/placement/placement.h>

#include <functional>
#include <span>

namespace shardprop::collective {

// Whether `op` can be run on `dtype`: where it is defined, except for what no
// kernel has: the order of unsigned integers beyond u8, products of complex
// numbers, anything of floats that only travel (the fnuz kinds, e8m0).
bool reduces(ReduceOp op, DType dtype);

// out = op over `terms`, on the host. Precondition: reduces(); all of one shape
// and dtype; `out` apart from the terms or the very view of one of them.
kernels::Status reduce_terms(ReduceOp op, std::span<const LocalTensor> terms,
                             const LocalTensor& out);
// The same by another kernel than the host's.
using ReduceKernel =
    std::function<kernels::Status(const kernels::ReduceIntoArgs&)>;
kernels::Status reduce_terms(ReduceOp op, std::span<const LocalTensor> terms,
                             const LocalTensor& out,
                             const ReduceKernel& kernel);

// out = in * factor, of floats and complex numbers.
kernels::Status scale_into(const LocalTensor& in, double factor,
                           const LocalTensor& out);

}  // namespace shardprop::collective
