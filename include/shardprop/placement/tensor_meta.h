// `TensorMeta` is the shape, strides and dtype of a full (unsharded) tensor.
//
// Invariants: sizes are non-negative, and each size has a non-negative stride.
// The bytes, and the distance from the first element to the last, are at most
// 2^56. Strides count elements. It is printed as `bf16[8,2048]`; strides that
// are not contiguous follow the shape: `bf16[8,2048]{1,8}`. It parses back.
//
//   TensorMeta::parse("bf16[8,2048]")->bytes() == 32768
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/result.h>
#include <shardprop/placement/dtype.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shardprop {

// The largest rank of a tensor, which is also PyTorch's limit.
inline constexpr int kMaxTensorRank = 64;

// Returns row-major strides in elements; a dim of size 0 counts as 1, as in
// PyTorch.
Dims contiguous_strides(std::span<const std::int64_t> shape);

class TensorMeta {
 public:
  TensorMeta();  // f32[]: a scalar

  // Error: kTensorMeta.
  static Result<TensorMeta> create(Dims shape, Dims strides, DType dtype);
  static Result<TensorMeta> contiguous(Dims shape, DType dtype);
  // Errors: kTensorMeta, kDTypeSyntax.
  static Result<TensorMeta> parse(std::string_view text);

  const Dims& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }
  DType dtype() const { return dtype_; }

  int rank() const { return static_cast<int>(shape_.size()); }
  // Precondition: 0 <= dim < rank().
  std::int64_t size(int dim) const {
    return shape_[static_cast<std::size_t>(dim)];
  }
  std::int64_t numel() const;
  std::int64_t bytes() const { return numel() * item_size(dtype_); }
  // Returns whether elements are row-major without gaps. Strides that no
  // element uses (a size of 1, an empty tensor) do not matter.
  bool is_contiguous() const;

  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;

 private:
  TensorMeta(Dims shape, Dims strides, DType dtype);
  Dims shape_;
  Dims strides_;
  DType dtype_ = DType::kF32;
};

std::string to_string(const TensorMeta& meta);

}  // namespace shardprop

template <>
struct std::hash<shardprop::TensorMeta> {
  std::size_t operator()(const shardprop::TensorMeta& m) const noexcept {
    std::size_t h =
        shardprop::hash_range(static_cast<std::size_t>(m.dtype()), m.shape());
    return shardprop::hash_range(h, m.strides());
  }
};
