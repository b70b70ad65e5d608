#pragma once

#include <cstdint>

#include <shardprop/kernels/dtype.h>

#include "../element.h"
#include "access.h"

namespace shardprop::kernels::cuda {

template <class T>
struct Type {
  using type = T;
};

// Calls `function` with the Type of a castable dtype.
template <class Function>
auto with_castable(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kFloat16:
      return function(Type<F16>{});
    case DType::kBFloat16:
      return function(Type<BF16>{});
    case DType::kFloat8E4M3FN:
      return function(Type<F8E4M3FN>{});
    case DType::kFloat8E5M2:
      return function(Type<F8E5M2>{});
    default:
      return function(Type<float>{});
  }
}

// Calls the function with the Type of `size` bytes: 1, 2, 4, 8 or 16.
template <class Function>
auto with_bytes(int size, const Function& function) {
  switch (size) {
    case 1:
      return function(Type<Bytes<1>>{});
    case 2:
      return function(Type<Bytes<2>>{});
    case 4:
      return function(Type<Bytes<4>>{});
    case 8:
      return function(Type<Bytes<8>>{});
    default:
      return function(Type<Bytes<16>>{});
  }
}

// Calls the function with the unsigned integer of `size` bytes: 1, 2, 4 or 8.
template <class Function>
auto with_unsigned(int size, const Function& function) {
  switch (size) {
    case 1:
      return function(Type<std::uint8_t>{});
    case 2:
      return function(Type<std::uint16_t>{});
    case 4:
      return function(Type<std::uint32_t>{});
    default:
      return function(Type<std::uint64_t>{});
  }
}

// Calls the function with the Type of an integer dtype.
template <class Function>
auto with_integer(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kInt64:
      return function(Type<std::int64_t>{});
    case DType::kInt32:
      return function(Type<std::int32_t>{});
    case DType::kInt16:
      return function(Type<std::int16_t>{});
    case DType::kInt8:
      return function(Type<std::int8_t>{});
    default:
      return function(Type<std::uint8_t>{});
  }
}

}  // namespace shardprop::kernels::cuda
