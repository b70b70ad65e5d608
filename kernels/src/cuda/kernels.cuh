#pragma once

#include <cuda_runtime.h>

#include "dispatch.h"
#include "launch.h"
#include "reduce_body.h"
#include "rows_body.h"

namespace shardprop::kernels::cuda {

// Returns the blocks for this many tiles. It is at most the number of blocks
// that the device runs at once; each block loops over tiles.
LaunchError grid_size(std::uint64_t tiles, unsigned* blocks);

template <class From, class To, class Params>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    rows_kernel(const __grid_constant__ Params params) {
  run_rows<From, To>(params, blockIdx.x, gridDim.x, threadIdx.x);
}

template <class From, class To>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    reduce_kernel(const __grid_constant__ ReduceParams params) {
  Reduction<From, To>::run(params, blockIdx.x, gridDim.x, threadIdx.x);
}

template <class Params>
LaunchError launch(void (*kernel)(Params), std::uint64_t tiles,
                   const Params& params, void* stream) {
  unsigned blocks = 0;
  if (const LaunchError error = grid_size(tiles, &blocks); error != 0) {
    return error;
  }
  // The <<<>>> syntax reports its error only by cudaGetLastError(). The error
  // may belong to an earlier call, and reading it would hide it from that
  // call's owner.
  void* arguments[] = {const_cast<Params*>(&params)};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks),
                          dim3(kThreads), arguments, 0,
                          static_cast<cudaStream_t>(stream));
}

// Launches a kernel from one source type to a castable type. Each source type
// has its own file, because the compiler needs long for these kernels.
template <class From, class Params>
LaunchError launch_rows_from(DType to, const Params& params, void* stream) {
  return with_castable(to, [&](auto type) {
    return launch(rows_kernel<From, typename decltype(type)::type, Params>,
                  params.header.tiles, params, stream);
  });
}

template <class From>
LaunchError launch_reduce_from(DType to, const ReduceParams& params,
                               void* stream) {
  return with_castable(to, [&](auto type) {
    return launch(reduce_kernel<From, typename decltype(type)::type>,
                  params.tiles, params, stream);
  });
}

}  // namespace shardprop::kernels::cuda

// Defines the kernels of a source type, or declares that another file does.
#define SHARDPROP_KERNELS_OF(extern_or_nothing, From)                    \
  namespace shardprop::kernels::cuda {                                   \
  extern_or_nothing template LaunchError                                 \
  launch_rows_from<From, SmallRowsParams>(DType, const SmallRowsParams&, \
                                          void*);                        \
  extern_or_nothing template LaunchError                                 \
  launch_rows_from<From, LargeRowsParams>(DType, const LargeRowsParams&, \
                                          void*);                        \
  extern_or_nothing template LaunchError launch_reduce_from<From>(       \
      DType, const ReduceParams&, void*);                                \
  }
