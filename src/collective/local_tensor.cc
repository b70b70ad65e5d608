#include <shardprop/collective/local_tensor.h>

#include <shardprop/base/error.h>
#include <shardprop/placement/tensor_meta.h>

#include "base/try.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/index.h"

namespace shardprop {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

std::string to_string(Device device) {
  if (device.type == DeviceType::kHost) return "host";
  return "cuda:" + std::to_string(device.index);
}

Result<LocalTensor> LocalTensor::empty(Dims sizes, DType dtype) {
  SP_ASSIGN(const TensorMeta meta, TensorMeta::contiguous(sizes, dtype));
  void* memory = ::operator new(static_cast<std::size_t>(meta.bytes()),
                                kAlignment, std::nothrow);
  if (memory == nullptr) {
    return fail(ErrorCode::kOutOfMemory,
                "no memory is left for " + to_string(meta),
                "free memory, raise its limit, or ask for less");
  }
  std::shared_ptr<void> owner(
      memory, [](void* p) { ::operator delete(p, kAlignment); });
  return wrap(memory, std::move(sizes), dtype, std::move(owner));
}

Result<LocalTensor> LocalTensor::zeros(Dims sizes, DType dtype) {
  SP_ASSIGN(LocalTensor out, empty(std::move(sizes), dtype));
  std::memset(out.data(), 0, static_cast<std::size_t>(out.bytes()));
  return out;
}

LocalTensor LocalTensor::wrap(void* data, Dims sizes, Dims strides, DType dtype,
                              std::shared_ptr<void> owner, Device device) {
  LocalTensor out;
  out.data_ = static_cast<std::byte*>(data);
  out.sizes_ = std::move(sizes);
  out.strides_ = std::move(strides);
  out.dtype_ = dtype;
  out.device_ = device;
  out.owner_ = std::move(owner);
  return out;
}

LocalTensor LocalTensor::wrap(void* data, Dims sizes, DType dtype,
                              std::shared_ptr<void> owner, Device device) {
  Dims strides = contiguous_strides({sizes.data(), sizes.size()});
  return wrap(data, std::move(sizes), std::move(strides), dtype,
              std::move(owner), device);
}

std::int64_t LocalTensor::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes_) count *= size;
  return count;
}

bool LocalTensor::is_contiguous() const {
  if (numel() == 0) return true;
  std::int64_t step = 1;
  for (int d = rank() - 1; d >= 0; --d) {
    if (size(d) == 1) continue;
    if (strides_[index(d)] != step) return false;
    step *= size(d);
  }
  return true;
}

LocalTensor LocalTensor::narrow(int dim, std::int64_t start,
                                std::int64_t length) const {
  if (dim < 0 || dim >= rank() || start < 0 || length < 0 ||
      start + length > size(dim)) {
    throw InternalError("narrow() outside " + to_string(*this));
  }
  LocalTensor out = *this;
  const auto d = index(dim);
  out.sizes_[d] = length;
  // Pointer arithmetic on the null pointer of an empty tensor is undefined.
  if (data_ != nullptr) {
    out.data_ += start * strides_[d] * item_size(dtype_);
  }
  return out;
}

LocalTensor LocalTensor::transpose(int a, int b) const {
  if (a < 0 || a >= rank() || b < 0 || b >= rank()) {
    throw InternalError("transpose() outside " + to_string(*this));
  }
  LocalTensor out = *this;
  const auto i = index(a);
  const auto j = index(b);
  std::swap(out.sizes_[i], out.sizes_[j]);
  std::swap(out.strides_[i], out.strides_[j]);
  return out;
}

LocalTensor LocalTensor::reshaped(Dims sizes) const {
  LocalTensor out = wrap(data_, std::move(sizes), dtype_, owner_, device_);
  if (!is_contiguous() || out.numel() != numel()) {
    throw InternalError("reshaped() of " + to_string(*this) + " as " +
                        to_string(out));
  }
  return out;
}

bool LocalTensor::same_view(const LocalTensor& other) const {
  return data_ == other.data_ && sizes_ == other.sizes_ &&
         strides_ == other.strides_ && dtype_ == other.dtype_;
}

std::string to_string(const LocalTensor& tensor) {
  std::string out(to_string(tensor.dtype()));
  const auto list = [&out](char open, const Dims& values, char close) {
    out += open;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ',';
      out += std::to_string(values[i]);
    }
    out += close;
  };
  list('[', tensor.sizes(), ']');
  if (!tensor.is_contiguous()) list('{', tensor.strides(), '}');
  return out;
}

}  // namespace shardprop
