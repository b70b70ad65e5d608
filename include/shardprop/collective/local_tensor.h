// `LocalTensor` is the part of a tensor that one rank holds: a strided view of
// memory.
//
// Copies are cheap and share memory. An owner, if there is one, exists as long
// as any view of its memory, so a running collective keeps its buffers. Memory
// without an owner must outlive every collective that uses it (until wait()
// returns).
//
// Strides count elements and may have any value, including zero and negative
// ones.
//
//   LocalTensor whole = LocalTensor::empty({4, 8}, DType::kBF16).value();
//   LocalTensor half = whole.narrow(0, 2, 2);  // rows 2 and 3, bf16[2,8]
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/result.h>
#include <shardprop/collective/device.h>
#include <shardprop/placement/dtype.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace shardprop {

class LocalTensor {
 public:
  LocalTensor() = default;  // f32[0]

  // Allocates uninitialised row-major host memory, aligned to 64 bytes. Errors:
  // kTensorMeta (negative or too large), kOutOfMemory.
  static Result<LocalTensor> empty(Dims sizes, DType dtype);
  // Allocates as empty() does, and fills the memory with zeros.
  static Result<LocalTensor> zeros(Dims sizes, DType dtype);
  // Wraps memory of the caller. `data` points to the first element.
  // Precondition: each size has a stride; sizes are not negative.
  static LocalTensor wrap(void* data, Dims sizes, Dims strides, DType dtype,
                          std::shared_ptr<void> owner = nullptr,
                          Device device = {});
  // Wraps row-major memory.
  static LocalTensor wrap(void* data, Dims sizes, DType dtype,
                          std::shared_ptr<void> owner = nullptr,
                          Device device = {});

  void* data() const { return data_; }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data());
  }
  const Dims& sizes() const { return sizes_; }
  const Dims& strides() const { return strides_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  const std::shared_ptr<void>& owner() const { return owner_; }

  int rank() const { return static_cast<int>(sizes_.size()); }
  // Precondition: 0 <= dim < rank().
  std::int64_t size(int dim) const {
    return sizes_[static_cast<std::size_t>(dim)];
  }
  std::int64_t numel() const;
  // Returns the bytes of the elements, without gaps.
  std::int64_t bytes() const { return numel() * item_size(dtype_); }
  bool is_contiguous() const;

  // These functions return views of the same memory.
  //
  // Precondition: the range is within the dim.
  LocalTensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  LocalTensor transpose(int a, int b) const;
  // Returns the same elements in row-major order with another shape.
  // Precondition: the tensor is contiguous, and the number of elements is the
  // same.
  LocalTensor reshaped(Dims sizes) const;

  // Returns whether both are the same view: equal memory, sizes, strides and
  // dtype.
  bool same_view(const LocalTensor& other) const;

 private:
  std::byte* data_ = nullptr;
  Dims sizes_{0};
  Dims strides_{1};
  DType dtype_ = DType::kF32;
  Device device_;
  std::shared_ptr<void> owner_;
};

// Prints "bf16[2,8]", followed by the strides if they are not contiguous.
std::string to_string(const LocalTensor& tensor);

}  // namespace shardprop
