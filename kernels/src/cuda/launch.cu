#include "launch.h"

#include "elements_body.h"
#include "kernels.cuh"

SHARDPROP_KERNELS_OF(extern, float)
SHARDPROP_KERNELS_OF(extern, F16)
SHARDPROP_KERNELS_OF(extern, BF16)
SHARDPROP_KERNELS_OF(extern, F8E4M3FN)
SHARDPROP_KERNELS_OF(extern, F8E5M2)

namespace shardprop::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    elements_kernel(const __grid_constant__ ElementsParams params) {
  run_elements(params, blockIdx.x, gridDim.x, threadIdx.x);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    transposition_kernel(const __grid_constant__ ElementsParams params) {
  __shared__ typename Transposition<T>::Square square;
  for (std::uint64_t tile = blockIdx.x; tile < params.tiles;
       tile += gridDim.x) {
    Transposition<T>::read(params, tile, threadIdx.x, square);
    __syncthreads();
    Transposition<T>::write(params, tile, threadIdx.x, square);
    __syncthreads();
  }
}

template <class Params>
LaunchError launch_any_rows(RowTypes types, const Params& params,
                            void* stream) {
  if (types.unit != 0) {
    return with_bytes(types.unit, [&](auto type) {
      using T = typename decltype(type)::type;
      return launch(rows_kernel<T, T, Params>, params.header.tiles, params,
                    stream);
    });
  }
  if (types.from == DType::kFloat64) {
    return launch(rows_kernel<double, double, Params>, params.header.tiles,
                  params, stream);
  }
  return with_castable(types.from, [&](auto type) {
    return launch_rows_from<typename decltype(type)::type>(types.to, params,
                                                           stream);
  });
}

}  // namespace

LaunchError grid_size(std::uint64_t tiles, unsigned* blocks) {
  int device = 0;
  int processors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                   device);
  }
  if (error != cudaSuccess) return error;
  const std::uint64_t most =
      static_cast<std::uint64_t>(processors) * kBlocksPerSm;
  *blocks = static_cast<unsigned>(tiles < most ? tiles : most);
  return cudaSuccess;
}

const char* describe(LaunchError error) {
  return cudaGetErrorString(static_cast<cudaError_t>(error));
}

LaunchError launch_rows(RowTypes types, const SmallRowsParams& params,
                        void* stream) {
  return launch_any_rows(types, params, stream);
}

LaunchError launch_rows(RowTypes types, const LargeRowsParams& params,
                        void* stream) {
  return launch_any_rows(types, params, stream);
}

LaunchError launch_elements(const ElementsParams& params, void* stream) {
  return launch(elements_kernel, params.tiles, params, stream);
}

LaunchError launch_transposition(int from_size, const ElementsParams& params,
                                 void* stream) {
  return with_unsigned(from_size, [&](auto type) {
    return launch(transposition_kernel<typename decltype(type)::type>,
                  params.tiles, params, stream);
  });
}

LaunchError launch_reduce(DType from, DType to, const ReduceParams& params,
                          void* stream) {
  if (is_castable(from)) {
    return with_castable(from, [&](auto type) {
      return launch_reduce_from<typename decltype(type)::type>(to, params,
                                                               stream);
    });
  }
  if (from == DType::kFloat64) {
    return launch(reduce_kernel<double, double>, params.tiles, params, stream);
  }
  return with_integer(from, [&](auto type) {
    using T = typename decltype(type)::type;
    return launch(reduce_kernel<T, T>, params.tiles, params, stream);
  });
}

}  // namespace shardprop::kernels::cuda
