#include "operand.h"

#include <limits>

namespace shardprop::kernels {
namespace {

Status make(const char* op, OperandName name, void* data, DType dtype,
            std::span<const std::int64_t> sizes,
            std::span<const std::int64_t> strides, Operand* operand) {
  if (!is_valid(dtype)) {
    return invalid(op, name.str(), " has dtype number ",
                   static_cast<std::int32_t>(dtype), ", which names no type");
  }
  if (sizes.size() > kMaxDims) {
    return {StatusCode::kUnsupported,
            message(op, ": ", name.str(), " has ", sizes.size(),
                    " dims, more than ", kMaxDims)};
  }
  if (!strides.empty() && strides.size() != sizes.size()) {
    return invalid(op, name.str(), " has ", sizes.size(), " sizes but ",
                   strides.size(), " strides");
  }
  operand->data = static_cast<std::byte*>(data);
  operand->dtype = dtype;
  operand->rank = static_cast<int>(sizes.size());
  const std::int64_t item = size_of(dtype);
  std::int64_t contiguous = item;
  std::int64_t reach = item;
  bool empty = false;
  for (int i = operand->rank - 1; i >= 0; --i) {
    const std::int64_t size = sizes[i];
    if (size < 0) {
      return invalid(op, name.str(), " has size ", size, " in dim ", i);
    }
    std::int64_t stride = contiguous;
    bool overflow = false;
    if (!strides.empty()) {
      overflow = __builtin_mul_overflow(strides[i], item, &stride);
    }
    // Every offset of an element must fit in 63 bits.
    std::int64_t span = 0;
    const std::int64_t length = size > 0 ? size : 1;
    overflow |= stride == std::numeric_limits<std::int64_t>::min();
    overflow = overflow || __builtin_mul_overflow(stride < 0 ? -stride : stride,
                                                  length - 1, &span);
    overflow = overflow || __builtin_add_overflow(reach, span, &reach);
    overflow =
        overflow || __builtin_mul_overflow(contiguous, length, &contiguous);
    if (overflow) {
      return invalid(op, name.str(), " of sizes ", sizes,
                     " is too large to address");
    }
    operand->sizes[i] = size;
    operand->strides[i] = stride;
    empty = empty || size == 0;
  }
  if (data == nullptr && !empty) {
    return invalid(op, name.str(), " of sizes ", sizes, " has a null pointer");
  }
  return {};
}

}  // namespace

std::int64_t Operand::count() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank; ++i) product *= sizes[i];
  return product;
}

std::string OperandName::str() const {
  return index < 0 ? std::string(list) : message(list, "[", index, "]");
}

Status make_operand(const char* op, OperandName name, const TensorView& view,
                    Operand* operand) {
  // Inputs and outputs share a type; only boxes distinguish the side that is
  // written.
  return make(op, name, const_cast<void*>(view.data), view.dtype, view.sizes,
              view.strides, operand);
}

Status make_operand(const char* op, OperandName name,
                    const MutableTensorView& view, Operand* operand) {
  return make(op, name, view.data, view.dtype, view.sizes, view.strides,
              operand);
}

Status check_cast(const char* op, DType from, DType to, double scale) {
  const bool castable = is_castable(from) && is_castable(to);
  if (from != to && !castable) {
    return {
        StatusCode::kUnsupported,
        message(op, ": no cast from ", to_string(from), " to ", to_string(to))};
  }
  if (scale != 1.0 && !castable && from != DType::kFloat64) {
    return {StatusCode::kUnsupported,
            message(op, ": ", to_string(from), " cannot be scaled")};
  }
  return {};
}

}  // namespace shardprop::kernels
