#pragma once

#include <cstdint>
#include <span>

#include <shardprop/kernels/dtype.h>

namespace shardprop::kernels {

// Most dims a tensor may have.
inline constexpr int kMaxDims = 16;

// Memory read as a tensor; owns nothing. Strides are in elements and may be
// anything, negative and zero included; empty means row-major contiguous. The
// data may have any alignment, though multiples of 16 bytes are fastest. `data`
// may be null where there are no elements.
//
// A 2 x 3 matrix of floats, column-major:
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

// The same for memory that is written. No two elements may share an address.
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
