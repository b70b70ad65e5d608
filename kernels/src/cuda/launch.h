#pragma once

#include <shardprop/kernels/dtype.h>

#include "params.h"

// The interface between host code, which knows tensors, and device code, which
// knows parameters. Tests replace the device by the host.
namespace shardprop::kernels::cuda {

// A cudaError_t; 0 is success.
using LaunchError = int;
const char* describe(LaunchError error);

// The types of a rows kernel. It moves units of `unit` bytes unchanged (1, 2,
// 4, 8 or 16), or converts elements if `unit` is 0.
struct RowTypes {
  int unit;
  DType from;
  DType to;
};

LaunchError launch_rows(RowTypes types, const SmallRowsParams& params,
                        void* stream);
LaunchError launch_rows(RowTypes types, const LargeRowsParams& params,
                        void* stream);
LaunchError launch_elements(const ElementsParams& params, void* stream);
// `from_size` is 1, 2, 4 or 8.
LaunchError launch_transposition(int from_size, const ElementsParams& params,
                                 void* stream);
LaunchError launch_reduce(DType from, DType to, const ReduceParams& params,
                          void* stream);

}  // namespace shardprop::kernels::cuda
