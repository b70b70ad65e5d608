#pragma once

#include <cstdint>
#include <span>

#include <shardprop/kernels/dtype.h>

namespace shardprop::kernels {

// The maximum number of dims of a tensor.
inline constexpr int kMaxDims = 16;

// `TensorView` reads memory as a tensor and owns nothing. Strides count
// elements and may be any numbers, negative and zero included; empty strides
// mean row-major contiguous. The data may have any alignment, though multiples
// of 16 bytes are fastest. `data` may be null if there are no elements.
//
// Example: a 2 x 3 matrix of floats, which is stored column-major:
//   const std::int64_t sizes[] = {2, 3}, strides[] = {1, 2};
//   TensorView view{memory, DType::kFloat32, sizes, strides};
struct TensorView {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  // NOLINTBEGIN(readability-redundant-member-init): callers that leave one out
  // would be warned.
  std::span<const std::int64_t> sizes = {};
  std::span<const std::int64_t> strides = {};
  // NOLINTEND(readability-redundant-member-init)
};

// A view of memory that is written. No two elements may share an address.
struct MutableTensorView {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  // NOLINTBEGIN(readability-redundant-member-init): callers that leave one out
  // would be warned.
  std::span<const std::int64_t> sizes = {};
  std::span<const std::int64_t> strides = {};
  // NOLINTEND(readability-redundant-member-init)
};

}  // namespace shardprop::kernels
