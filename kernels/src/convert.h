#pragma once

#include <cstdint>
#include <cstring>

#include "element.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#define SHARDPROP_HD __host__ __device__ __forceinline__
#else
#define SHARDPROP_HD inline
#endif

// The scalar definition of every cast, the same on CPU and GPU. The vector code
// must agree with it bit for bit, except for NaNs. Conditions on values compile
// to selects. Rounding and overflow follow PyTorch (c10/util/Half.h,
// BFloat16.h, Float8_e4m3fn.h, Float8_e5m2.h).
//
// The numbers in hex are f32 bit patterns. A subnormal result is rounded by
// adding a power of two whose last place is the smallest subnormal.
namespace shardprop::kernels {

SHARDPROP_HD std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

SHARDPROP_HD float float_of(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

SHARDPROP_HD float to_float(float value) { return value; }

SHARDPROP_HD float to_float(BF16 value) {
  return float_of(static_cast<std::uint32_t>(value.bits) << 16);
}

SHARDPROP_HD float to_float(F16 value) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(value.bits));
#else
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  const std::uint32_t normal = (magnitude << 13) + 0x38000000U;
  const std::uint32_t special = (magnitude << 13) | 0x7f800000U;
  const std::uint32_t subnormal =
      bits_of(float_of(0x38800000U + (magnitude << 13)) - 0x1p-14F);
  const std::uint32_t finite = magnitude < 0x0400U ? subnormal : normal;
  return float_of(sign | (magnitude >= 0x7c00U ? special : finite));
#endif
}

SHARDPROP_HD float to_float(F8E5M2 value) {
  return to_float(
      F16{static_cast<std::uint16_t>(static_cast<unsigned>(value.bits) << 8)});
}

SHARDPROP_HD float to_float(F8E4M3FN value) {
  const std::uint32_t sign = (value.bits & 0x80U) << 24;
  const std::uint32_t magnitude = value.bits & 0x7fU;
  const std::uint32_t normal = (magnitude << 20) + 0x3c000000U;
  const std::uint32_t subnormal =
      bits_of(float_of(0x3c800000U + (magnitude << 20)) - 0x1p-6F);
  const std::uint32_t finite = magnitude < 0x08U ? subnormal : normal;
  return float_of(sign | (magnitude == 0x7fU ? 0x7fc00000U : finite));
}

template <class T>
SHARDPROP_HD T from_float(float value);

template <>
SHARDPROP_HD float from_float<float>(float value) {
  return value;
}

template <>
SHARDPROP_HD BF16 from_float<BF16>(float value) {
#if defined(__CUDA_ARCH__)
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {static_cast<std::uint16_t>(nan ? 0x7fc0U : rounded)};
#endif
}

template <>
SHARDPROP_HD F16 from_float<F16>(float value) {
#if defined(__CUDA_ARCH__)
  return {__half_as_ushort(__float2half_rn(value))};
#else
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t normal =
      (magnitude + 0xc8000fffU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t subnormal =
      bits_of(float_of(magnitude) + 0.5F) - 0x3f000000U;
  const std::uint32_t special = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  return {static_cast<std::uint16_t>(
      sign | (magnitude >= 0x47800000U ? special : finite))};
#endif
}

// Values beyond 448, infinity included, become 448. PyTorch does so since
// #178817, and the GPU's own conversion always has.
template <>
SHARDPROP_HD F8E4M3FN from_float<F8E4M3FN>(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  return {__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3)};
#else
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 24) & 0x80U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t normal =
      (magnitude + 0xc407ffffU + ((magnitude >> 20) & 1U)) >> 20;
  const std::uint32_t subnormal =
      bits_of(float_of(magnitude) + 0x1p14F) - 0x46800000U;
  const std::uint32_t special = magnitude > 0x7f800000U ? 0x7fU : 0x7eU;
  const std::uint32_t finite = magnitude < 0x3c800000U ? subnormal : normal;
  return {static_cast<std::uint8_t>(
      sign | (magnitude > 0x43e00000U ? special : finite))};
#endif
}

// Values that round beyond 57344, which are those from 61440 on, become
// infinity; the GPU's own conversion saturates.
template <>
SHARDPROP_HD F8E5M2 from_float<F8E5M2>(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 24) & 0x80U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t special = magnitude > 0x7f800000U ? 0x7fU : 0x7cU;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  const std::uint32_t saturated =
      __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
  return {static_cast<std::uint8_t>(magnitude >= 0x47700000U ? sign | special
                                                             : saturated)};
#else
  const std::uint32_t normal =
      (magnitude + 0xc80fffffU + ((magnitude >> 21) & 1U)) >> 21;
  const std::uint32_t subnormal =
      bits_of(float_of(magnitude) + 0x1p7F) - 0x43000000U;
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  return {static_cast<std::uint8_t>(
      sign | (magnitude >= 0x47700000U ? special : finite))};
#endif
}

// Returns `from` times `scale` as `To`. A type that is copied unchanged changes
// its value only by a scale other than 1.
template <class To, class From>
SHARDPROP_HD To convert(From value, float scale) {
  return from_float<To>(to_float(value) * scale);
}

}  // namespace shardprop::kernels
