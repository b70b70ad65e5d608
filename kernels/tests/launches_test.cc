// Tests the number of launches per call, which the emulated device counts.

#include <shardprop/kernels/cuda.h>

#include <vector>

#include "check.h"
#include "cuda_emulation.h"

namespace shardprop::kernels::testing {
namespace {

std::int64_t launches_of(std::int64_t count, std::int64_t trailing_stride) {
  const std::int64_t sizes[] = {4, 3};
  const std::int64_t strides[] = {3 * trailing_stride, trailing_stride};
  std::vector<float> memory(static_cast<std::size_t>(12 * trailing_stride));
  const std::vector<TensorView> tensors(
      static_cast<std::size_t>(count),
      {memory.data(), DType::kFloat32, sizes, strides});
  std::vector<float> out(static_cast<std::size_t>(count * 12));
  const std::int64_t shape[] = {2, count * 6};
  const std::int64_t before = cuda::emulated_launches();
  const Status status =
      cuda::chunk_cat({.tensors = tensors,
                       .num_chunks = 2,
                       .out = {out.data(), DType::kFloat32, shape, {}}});
  CHECK_FOR(status.ok(), status.message());
  return cuda::emulated_launches() - before;
}

TEST("800 contiguous tensors take one launch, more take one a batch") {
  CHECK(launches_of(1, 1) == 1);
  CHECK(launches_of(150, 1) == 1);
  CHECK(launches_of(800, 1) == 1);
  CHECK(launches_of(2000, 1) == 3);
}

TEST("150 strided tensors take one launch") {
  CHECK(launches_of(150, 2) == 1);
  CHECK(launches_of(500, 2) <= 3);
}

}  // namespace
}  // namespace shardprop::kernels::testing
