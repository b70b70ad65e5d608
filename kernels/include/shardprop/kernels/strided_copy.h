#pragma once

#include <shardprop/kernels/tensor.h>

namespace shardprop::kernels {

// out[i] = cast(in[i] * scale) for every index i. Both sides may have any
// strides, which includes any permutation of dims. A stride of zero in `in`
// broadcasts.
//
// Transposing a 2 x 3 matrix: in has sizes {3, 2} and strides {1, 3}, out has
// sizes {3, 2}.
//
// kInvalidArgument: shapes that differ. kUnsupported, kOverlap: as chunk_cat.
struct StridedCopyArgs {
  TensorView in;
  MutableTensorView out;
  double scale = 1.0;
};

// Writes one value to every element of `out`. `value` points to an element of
// the type of `out`, in host memory.
//
// kInvalidArgument: a null value. kOverlap: `out` overlaps itself.
struct FillArgs {
  MutableTensorView out;
  const void* value = nullptr;
};

}  // namespace shardprop::kernels
