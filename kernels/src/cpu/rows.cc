#include "rows.h"

#include <array>

namespace shardprop::kernels::cpu {

namespace plain {
extern const RowKernels kRowKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const RowKernels kRowKernels;
}
namespace avx512 {
extern const RowKernels kRowKernels;
}
#endif

namespace {

struct Usable {
  std::array<const RowKernels*, 3> kernels;
  std::size_t count = 0;

  Usable() {
    kernels[count++] = &plain::kRowKernels;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
      kernels[count++] = &avx2::kRowKernels;
      if (__builtin_cpu_supports("avx512f") &&
          __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512vl") &&
          __builtin_cpu_supports("avx512dq")) {
        kernels[count++] = &avx512::kRowKernels;
      }
    }
#endif
  }
};

}  // namespace

std::span<const RowKernels* const> all_row_kernels() {
  static const Usable usable;
  return {usable.kernels.data(), usable.count};
}

const RowKernels& row_kernels() { return *all_row_kernels().back(); }

}  // namespace shardprop::kernels::cpu
