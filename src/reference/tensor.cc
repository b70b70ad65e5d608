#include <shardprop/base/error.h>
#include <shardprop/reference/tensor.h>

#include <utility>
#include <vector>

#include "base/index.h"

namespace shardprop::reference {

Tensor::Tensor() = default;

Tensor Tensor::zeros(Dims shape, DType dtype) {
  std::int64_t bytes = item_size(dtype);
  for (const std::int64_t size : shape) bytes *= size;
  // Memory is allocated as doubles, so that every dtype is aligned.
  const auto words = index((bytes + 15) / 16 * 2);
  auto memory = std::make_shared<std::vector<double>>(words);
  void* data = memory->data();
  Dims strides = contiguous_strides(shape);
  return wrap(data, std::move(shape), std::move(strides), dtype,
              std::move(memory));
}

Tensor Tensor::wrap(void* data, Dims shape, Dims strides, DType dtype,
                    std::shared_ptr<void> owner) {
  Tensor out;
  out.data_ = static_cast<std::byte*>(data);
  out.shape_ = std::move(shape);
  out.strides_ = std::move(strides);
  out.dtype_ = dtype;
  out.owner_ = std::move(owner);
  return out;
}

std::int64_t Tensor::numel() const {
  std::int64_t n = 1;
  for (const std::int64_t size : shape_) n *= size;
  return n;
}

bool Tensor::is_contiguous() const {
  std::int64_t step = 1;
  for (std::size_t d = shape_.size(); d-- > 0;) {
    if (shape_[d] == 0) return true;
    if (shape_[d] == 1) continue;
    if (strides_[d] != step) return false;
    step *= shape_[d];
  }
  return true;
}

TensorMeta Tensor::meta() const {
  auto meta = TensorMeta::create(shape_, strides_, dtype_);
  if (!meta) throw InternalError("a tensor has no valid meta");
  return *std::move(meta);
}

Tensor Tensor::seen_as(Dims shape, Dims strides, std::int64_t offset) const {
  Tensor out = *this;
  out.data_ += offset * item_size(dtype_);
  out.shape_ = std::move(shape);
  out.strides_ = std::move(strides);
  return out;
}

Tensor Tensor::seen_as(DType dtype) const {
  if (item_size(dtype) != item_size(dtype_)) {
    throw InternalError("a view as a dtype of another width");
  }
  Tensor out = *this;
  out.dtype_ = dtype;
  return out;
}

}  // namespace shardprop::reference
