// LocalTensor: what one rank holds of a tensor, a strided view of memory.
//
// Copies are cheap and see the same memory. The owner, when there is one, lives
// as long as any view of it, so that a collective in flight can hold on to its
// buffers; memory without an owner must outlive every collective that uses it
// (until wait() returns).
//
// Strides count elements and may be anything, zero and negative included.
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

  // Host memory, uninitialised, row-major, aligned to 64 bytes. Errors:
  // kTensorMeta (negative or too large), kOutOfMemory.
  static Result<LocalTensor> empty(Dims sizes, DType dtype);
  // The same, filled with zeros.
  static Result<LocalTensor> zeros(Dims sizes, DType dtype);
  // Memory of someone else. `data` points to the first element.
  // Precondition: one stride per size; sizes >= 0.
  static LocalTensor wrap(void* data, Dims sizes, Dims strides, DType dtype,
                          std::shared_ptr<void> owner = nullptr,
                          Device device = {});
  // Row-major.
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
  // What the elements take, without gaps.
  std::int64_t bytes() const { return numel() * item_size(dtype_); }
  bool is_contiguous() const;

  // Views of the same memory.
  //
  // Precondition: the range lies within the dim.
  LocalTensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  LocalTensor transpose(int a, int b) const;
  // The same elements in row-major order under another shape. Precondition:
  // contiguous, and as many elements.
  LocalTensor reshaped(Dims sizes) const;

  // Whether both are the very same view: memory, sizes, strides and dtype.
  bool same_view(const LocalTensor& other) const;

 private:
  std::byte* data_ = nullptr;
  Dims sizes_{0};
  Dims strides_{1};
  DType dtype_ = DType::kF32;
  Device device_;
  std::shared_ptr<void> owner_;
};

// "bf16[2,8]", with strides behind when they are not the contiguous ones.
std::string to_string(const LocalTensor& tensor);

}  // namespace shardprop
