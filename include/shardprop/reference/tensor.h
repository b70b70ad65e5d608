// `reference::Tensor` is a strided view of host memory, on which the reference
// computes.
//
// Copies are cheap and share memory, which exists as long as any view of it.
// Strides count elements. If an operator is declared as a view, its result is a
// view here too, if strides allow one.
//
//   Tensor whole = Tensor::zeros({4, 8}, DType::kF32);
//   Tensor rows = whole.seen_as({2, 8}, {8, 1}, 16);   // rows 2 and 3
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/placement/dtype.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shardprop::reference {

// Returns whether the reference reads and writes values of this dtype. It lacks floats of
// 8 bits and complex numbers of two f16.
bool has_values(DType dtype);

class Tensor {
 public:
  Tensor();  // f32[0]

  // Allocates row-major memory, set to zero. Precondition:
  // TensorMeta::contiguous accepts the sizes.
  static Tensor zeros(Dims shape, DType dtype);
  // Wraps memory of the caller; `data` points to the first element.
  // Precondition: each size has a stride; sizes and strides are not negative.
  static Tensor wrap(void* data, Dims shape, Dims strides, DType dtype,
                     std::shared_ptr<void> owner = nullptr);

  std::byte* data() const { return data_; }
  const Dims& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }
  DType dtype() const { return dtype_; }
  const std::shared_ptr<void>& owner() const { return owner_; }

  int rank() const { return static_cast<int>(shape_.size()); }
  // Precondition: 0 <= dim < rank().
  std::int64_t size(int dim) const {
    return shape_[static_cast<std::size_t>(dim)];
  }
  std::int64_t numel() const;
  bool is_contiguous() const;
  TensorMeta meta() const;

  // Returns the same memory with another shape, `offset` elements further.
  // Precondition: it stays within the memory.
  Tensor seen_as(Dims shape, Dims strides, std::int64_t offset = 0) const;
  // Returns the same bits as elements of another dtype of the same width.
  Tensor seen_as(DType dtype) const;

 private:
  std::byte* data_ = nullptr;
  Dims shape_{0};
  Dims strides_{1};
  DType dtype_ = DType::kF32;
  std::shared_ptr<void> owner_;
};

}  // namespace shardprop::reference
