// How the packing kernels see a LocalTensor.
//
// The kernels know fewer types: what they only carry goes as bits of the same
// width (u16 as i16, f8e4m3fnuz as u8), so casts, scales and reductions are
// for the types both have. The view refers to the tensor's own sizes and
// strides: the tensor must outlive it.
#pragma once

#include <shardprop/collective/local_tensor.h>
#include <shardprop/kernels/tensor.h>

namespace shardprop {

kernels::DType carried_as(DType dtype);
kernels::TensorView kernel_view(const LocalTensor& tensor);
kernels::MutableTensorView mutable_kernel_view(const LocalTensor& tensor);

// Copies the elements of `from` to `to`, which has its sizes and dtype, between
// host memories of any strides. Errors: kCollectiveCall (other sizes or
// dtype), kCollectiveOverlap, kCollectiveDevice.
Result<void> copy(const LocalTensor& from, const LocalTensor& to);

}  // namespace shardprop
