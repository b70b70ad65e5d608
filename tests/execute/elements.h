// Converts elements of every dtype to and from small exact numbers.
#pragma once

#include <shardprop/placement/dtype.h>
#include <shardprop/placement/placement.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

namespace shardprop::testing {

// A `Number` has a real and an imaginary part.
using Number = std::array<double, 2>;
using ElementBits = std::array<std::byte, 16>;

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
};

inline std::optional<FloatFormat> float_format(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
      return FloatFormat{4, 3, 7};
    case DType::kF8E5M2:
      return FloatFormat{5, 2, 15};
    case DType::kF16:
    case DType::kC32:
      return FloatFormat{5, 10, 15};
    case DType::kBF16:
      return FloatFormat{8, 7, 127};
    case DType::kF32:
    case DType::kC64:
      return FloatFormat{8, 23, 127};
    case DType::kF64:
    case DType::kC128:
      return FloatFormat{11, 52, 1023};
    default:
      return std::nullopt;
  }
}

inline std::int64_t part_size(DType dtype) {
  return item_size(dtype) / (is_complex(dtype) ? 2 : 1);
}

// Throws when the value has no exact normal form.
inline std::uint64_t float_bits(double value, const FloatFormat& format) {
  const std::uint64_t sign = std::signbit(value) ? 1 : 0;
  const std::uint64_t top = sign
                            << (format.exponent_bits + format.mantissa_bits);
  if (value == 0) return top;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);
  const double mantissa = std::ldexp(2 * fraction - 1, format.mantissa_bits);
  const int stored = exponent - 1 + format.bias;
  if (mantissa != std::floor(mantissa) || stored <= 0 ||
      stored >= 1 << format.exponent_bits) {
    throw std::runtime_error("a test value is not exact in its dtype");
  }
  return top | static_cast<std::uint64_t>(stored) << format.mantissa_bits |
         static_cast<std::uint64_t>(mantissa);
}

inline double float_value(std::uint64_t bits, const FloatFormat& format) {
  const std::uint64_t mantissa =
      bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const auto stored =
      static_cast<int>(bits >> format.mantissa_bits &
                       ((std::uint64_t{1} << format.exponent_bits) - 1));
  const double sign =
      (bits >> (format.exponent_bits + format.mantissa_bits) & 1U) != 0 ? -1
                                                                        : 1;
  if (stored == 0) {
    return sign * std::ldexp(static_cast<double>(mantissa),
                             1 - format.bias - format.mantissa_bits);
  }
  return sign * std::ldexp(1 + std::ldexp(static_cast<double>(mantissa),
                                          -format.mantissa_bits),
                           stored - format.bias);
}

inline ElementBits encode(DType dtype, const Number& number) {
  ElementBits out{};
  const auto format = float_format(dtype);
  for (std::size_t part = 0; part < (is_complex(dtype) ? 2U : 1U); ++part) {
    const std::uint64_t bits =
        format ? float_bits(number[part], *format)
               : static_cast<std::uint64_t>(
                     static_cast<std::int64_t>(number[part]));
    const auto size = static_cast<std::size_t>(part_size(dtype));
    std::memcpy(out.data() + part * size, &bits, size);
  }
  return out;
}

inline Number decode(DType dtype, const std::byte* from) {
  Number out{};
  const auto format = float_format(dtype);
  const auto size = static_cast<std::size_t>(part_size(dtype));
  for (std::size_t part = 0; part < (is_complex(dtype) ? 2U : 1U); ++part) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, from + part * size, size);
    if (format) {
      out[part] = float_value(bits, *format);
      continue;
    }
    const bool negative = dtype != DType::kBool && to_string(dtype)[0] == 'i' &&
                          (bits >> (8 * size - 1) & 1U) != 0;
    if (negative && size < 8) bits |= ~std::uint64_t{0} << (8 * size);
    out[part] = static_cast<double>(static_cast<std::int64_t>(bits));
  }
  return out;
}

// Returns the reduction of two terms. A sum of bools is `or`, a product is
// `and`.
inline Number combined(ReduceOp op, DType dtype, const Number& a,
                       const Number& b) {
  const bool truth = dtype == DType::kBool;
  const auto bits = [](double x) { return static_cast<std::int64_t>(x); };
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      if (truth) return {std::max(a[0], b[0]), 0};
      return {a[0] + b[0], a[1] + b[1]};
    case ReduceOp::kProduct:
      return {a[0] * b[0], 0};
    case ReduceOp::kMin:
      return {std::min(a[0], b[0]), 0};
    case ReduceOp::kMax:
      return {std::max(a[0], b[0]), 0};
    case ReduceOp::kBand:
      return {static_cast<double>(bits(a[0]) & bits(b[0])), 0};
    case ReduceOp::kBor:
      return {static_cast<double>(bits(a[0]) | bits(b[0])), 0};
    case ReduceOp::kBxor:
      return {static_cast<double>(bits(a[0]) ^ bits(b[0])), 0};
  }
  throw std::runtime_error("a reduce op outside its enumeration");
}

// The ops that engines reduce a dtype with.
inline std::vector<ReduceOp> ops_of(DType dtype) {
  using enum ReduceOp;
  switch (dtype) {
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0FNU:
    case DType::kC32:
      return {};
    case DType::kC64:
    case DType::kC128:
      return {kSum, kAvg};
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return {kSum, kProduct, kBand, kBor, kBxor};
    default:
      if (is_floating(dtype)) return {kSum, kAvg, kProduct, kMin, kMax};
      return {kSum, kProduct, kMin, kMax, kBand, kBor, kBxor};
  }
}

}  // namespace shardprop::testing
