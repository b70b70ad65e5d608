#pragma once

#include <cuda_runtime.h>

#include "dispatch.h"
#include "launch.h"
#include "reduce_body.h"
#include "rows_body.h"

namespace shardprop::kernels::cuda {

// Blocks for so many tiles: as many as the device runs at once, which then
// loop.
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
  // Not by <<<>>>, whose error can only be had from cudaGetLastError(): that
  // one may be an earlier call's, and reading it takes it from its owner.
  void* arguments[] = {const_cast<Params*>(&params)};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks),
                          dim3(kThreads), arguments, 0,
                          static_cast<cudaStream_t>(stream));
}

// One source type to each castable type. A file of its own for each source, as
// the compiler takes long over them.
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

// Defines the kernels of a source type, or says that another file does.
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
