#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <shardprop/kernels/status.h>
#include <shardprop/kernels/tensor.h>

#include "message.h"

namespace shardprop::kernels {

// A checked tensor view, with strides in bytes. Only the first `rank` entries
// of the arrays are used.
struct Operand {
  std::byte* data;
  DType dtype;
  int rank;
  std::array<std::int64_t, kMaxDims> sizes;
  std::array<std::int64_t, kMaxDims> strides;

  std::span<const std::int64_t> shape() const {
    return {sizes.data(), static_cast<std::size_t>(rank)};
  }
  std::int64_t item_size() const { return size_of(dtype); }
  std::int64_t count() const;
};

// The name of a tensor in messages: "out" or "tensors[3]". It is formatted only
// for a message, because lists are long and errors rare.
struct OperandName {
  const char* list;
  std::int64_t index = -1;

  std::string str() const;
};

// Checks a single view: dtype, dims, sizes, strides, pointer.
Status make_operand(const char* op, OperandName name, const TensorView& view,
                    Operand* operand);
Status make_operand(const char* op, OperandName name,
                    const MutableTensorView& view, Operand* operand);

// Returns kInvalidArgument. The message starts with the name of the op.
template <class... Pieces>
Status invalid(const char* op, const Pieces&... pieces) {
  return {StatusCode::kInvalidArgument, message(op, ": ", pieces...)};
}

// True if elements of `from`, multiplied by scale, can become elements of `to`.
Status check_cast(const char* op, DType from, DType to, double scale);

}  // namespace shardprop::kernels
