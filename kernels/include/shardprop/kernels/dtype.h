#pragma once

#include <cstdint>
#include <string_view>

namespace shardprop::kernels {

// Element types. The numbers are part of the C API and never change.
//
// Casts exist among kFloat32, kFloat16, kBFloat16, kFloat8E4M3FN and
// kFloat8E5M2; every other type is copied bit for bit. A cast uses f32 and
// rounds to nearest even, as PyTorch does. A value that is too large becomes an
// infinity (f16, bf16, e5m2). e4m3fn has no infinity, so the value becomes the
// largest number, 448 (PyTorch since its #178817).
enum class DType : std::int32_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kBFloat16 = 2,
  kFloat8E4M3FN = 3,
  kFloat8E5M2 = 4,
  kFloat64 = 5,
  kInt64 = 6,
  kInt32 = 7,
  kInt16 = 8,
  kInt8 = 9,
  kUInt8 = 10,
  kBool = 11,
  kComplex64 = 12,
  kComplex128 = 13,
};

inline constexpr int kDTypeCount = 14;
// The castable types are the first of the list.
inline constexpr int kCastableCount = 5;

constexpr bool is_valid(DType dtype) {
  const auto index = static_cast<std::int32_t>(dtype);
  return index >= 0 && index < kDTypeCount;
}

constexpr bool is_castable(DType dtype) {
  const auto index = static_cast<std::int32_t>(dtype);
  return index >= 0 && index < kCastableCount;
}

// Returns the bytes of one element; 0 for a value that is not a dtype.
constexpr std::int64_t size_of(DType dtype) {
  constexpr std::int64_t kSizes[kDTypeCount] = {4, 2, 2, 1, 1, 8, 8,
                                                4, 2, 1, 1, 1, 8, 16};
  return is_valid(dtype) ? kSizes[static_cast<std::int32_t>(dtype)] : 0;
}

// "f32", "bf16", "f8e4m3fn", ...
constexpr std::string_view to_string(DType dtype) {
  constexpr std::string_view kNames[kDTypeCount] = {
      "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2", "f64", "i64",
      "i32", "i16", "i8",   "u8",       "bool",   "c64", "c128"};
  return is_valid(dtype) ? kNames[static_cast<std::int32_t>(dtype)] : "?";
}

}  // namespace shardprop::kernels
