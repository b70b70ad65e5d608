// This header has the dtype of the statistics that norms return.
#pragma once

#include <shardprop/placement/dtype.h>

namespace shardprop {

// Returns the dtype of mean and rstd. Kernels differ: on the CPU, and so in the
// output of torch.export, they have the input's dtype. On a GPU they are f32
// for inputs in half precision.
inline DType statistics_dtype(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 ? DType::kF32 : dtype;
}

}  // namespace shardprop
