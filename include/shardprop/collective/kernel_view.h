// `kernel_view` converts a LocalTensor to the view that the packing kernels
// use.
//
// The kernels have fewer dtypes. A dtype that they only copy is represented as
// bits of the same width (u16 as i16, f8e4m3fnuz as u8). Casts, scales and
// reductions are therefore limited to dtypes that both have. The view refers to
// the tensor's sizes and strides, so the tensor must outlive it.
#pragma once

#include <shardprop/collective/local_tensor.h>
#include <shardprop/kernels/tensor.h>

namespace shardprop {

kernels::DType carried_as(DType dtype);
kernels::TensorView kernel_view(const LocalTensor& tensor);
kernels::MutableTensorView mutable_kernel_view(const LocalTensor& tensor);

// Copies the elements of `from` to `to`, which has the same sizes and dtype,
// between host memories of any strides. Errors: kCollectiveCall (other sizes or
// dtype), kCollectiveOverlap, kCollectiveDevice.
Result<void> copy(const LocalTensor& from, const LocalTensor& to);

}  // namespace shardprop
