// This header has the dtypes of the operands and statistics of norms.
#pragma once

#include <shardprop/placement/dtype.h>

namespace shardprop {

class OpCall;

// Returns the dtype of mean and rstd. Kernels differ: on the CPU, and so in the
// output of torch.export, they have the input's dtype. On a GPU they are f32
// for inputs in half precision.
inline DType statistics_dtype(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 ? DType::kF32 : dtype;
}

// Checks that weight and bias have one dtype, which is the input's, or f32 if the
// input is in half precision. PyTorch refuses other calls.
void require_affine_dtypes(const OpCall& call);

}  // namespace shardprop
