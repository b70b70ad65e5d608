// The dtype of what norms keep beside their result.
#pragma once

#include <shardprop/placement/dtype.h>

namespace shardprop {

// The dtype of mean and rstd. Kernels differ: on the CPU, and so in what
// torch.export writes, they have the input's dtype; on a GPU half precision
// keeps them in f32.
inline DType statistics_dtype(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 ? DType::kF32 : dtype;
}

}  // namespace shardprop
