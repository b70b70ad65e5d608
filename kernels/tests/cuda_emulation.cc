// Emulates the device on the host: runs every block and thread of a launch in
// turn, by the functions that the kernels call. The CUDA ops thus run on host
// memory, also under sanitizers and on machines without a GPU.

#include <shardprop/kernels/cuda.h>

#include "cuda_emulation.h"

#include "../src/cuda/dispatch.h"
#include "../src/cuda/elements_body.h"
#include "../src/cuda/launch.h"
#include "../src/cuda/reduce_body.h"
#include "../src/cuda/rows_body.h"

namespace shardprop::kernels::cuda {
namespace {

// Fewer than the tiles of most cases, so that blocks loop.
constexpr std::uint32_t kBlocks = 3;

std::int64_t launches = 0;

template <class Body>
LaunchError launch(const Body& body) {
  ++launches;
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
      body(block, thread);
    }
  }
  return 0;
}

template <class From, class To, class Params>
LaunchError run(const Params& params) {
  return launch([&](std::uint32_t block, std::uint32_t thread) {
    run_rows<From, To>(params, block, kBlocks, thread);
  });
}

template <class From, class To>
LaunchError reduce(const ReduceParams& params) {
  return launch([&](std::uint32_t block, std::uint32_t thread) {
    Reduction<From, To>::run(params, block, kBlocks, thread);
  });
}

template <class Params>
LaunchError launch_any_rows(RowTypes types, const Params& params) {
  if (types.unit != 0) {
    return with_bytes(types.unit, [&](auto type) {
      using T = typename decltype(type)::type;
      return run<T, T>(params);
    });
  }
  if (types.from == DType::kFloat64) return run<double, double>(params);
  return with_castable(types.from, [&](auto from) {
    return with_castable(types.to, [&](auto to) {
      return run<typename decltype(from)::type, typename decltype(to)::type>(
          params);
    });
  });
}

}  // namespace

std::int64_t emulated_launches() { return launches; }

const char* describe(LaunchError) { return "no error can come of the host"; }

LaunchError launch_rows(RowTypes types, const SmallRowsParams& params, void*) {
  return launch_any_rows(types, params);
}

LaunchError launch_rows(RowTypes types, const LargeRowsParams& params, void*) {
  return launch_any_rows(types, params);
}

LaunchError launch_elements(const ElementsParams& params, void*) {
  return launch([&](std::uint32_t block, std::uint32_t thread) {
    run_elements(params, block, kBlocks, thread);
  });
}

LaunchError launch_transposition(int from_size, const ElementsParams& params,
                                 void*) {
  return with_unsigned(from_size, [&](auto type) -> LaunchError {
    using Body = Transposition<typename decltype(type)::type>;
    ++launches;
    typename Body::Square square;
    for (std::uint64_t tile = 0; tile < params.tiles; ++tile) {
      for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        Body::read(params, tile, thread, square);
      }
      for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        Body::write(params, tile, thread, square);
      }
    }
    return 0;
  });
}

LaunchError launch_reduce(DType from, DType to, const ReduceParams& params,
                          void*) {
  if (is_castable(from)) {
    return with_castable(from, [&](auto source) {
      return with_castable(to, [&](auto target) {
        return reduce<typename decltype(source)::type,
                      typename decltype(target)::type>(params);
      });
    });
  }
  if (from == DType::kFloat64) return reduce<double, double>(params);
  return with_integer(from, [&](auto type) {
    using T = typename decltype(type)::type;
    return reduce<T, T>(params);
  });
}

}  // namespace shardprop::kernels::cuda
