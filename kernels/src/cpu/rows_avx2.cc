#include <immintrin.h>

#include <cstring>

#include "../element.h"
#include "rows.h"

namespace shardprop::kernels::cpu::avx2 {
namespace {

__m256i integers(__m256 value) { return _mm256_castps_si256(value); }
__m256 floats(__m256i value) { return _mm256_castsi256_ps(value); }
__m256i splat(unsigned value) {
  return _mm256_set1_epi32(static_cast<int>(value));
}

// The formulas of convert.h, eight at a time.
struct Simd {
  static constexpr int kWidth = 8;
  static constexpr const char* kName = "avx2";
  using Floats = __m256;

  template <class T>
  static Floats load(const std::byte* from);
  template <class T>
  static void store(std::byte* to, Floats value);
  static Floats multiply(Floats value, float scale) {
    return _mm256_mul_ps(value, _mm256_set1_ps(scale));
  }

  // Streams a cache line of results; `values` has the vectors that fill it.
  template <class T>
  static void stream_line(std::byte* to, const Floats* values);
  static void copy_line(std::byte* to, const std::byte* from) {
    for (int half = 0; half < 64; half += 32) {
      _mm256_stream_si256(
          reinterpret_cast<__m256i*>(to + half),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + half)));
    }
  }
};

__m128i load_bytes(const std::byte* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}
__m128i load_halves(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

template <>
Simd::Floats Simd::load<float>(const std::byte* from) {
  return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
}
template <>
Simd::Floats Simd::load<BF16>(const std::byte* from) {
  return floats(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_halves(from)), 16));
}
template <>
Simd::Floats Simd::load<F16>(const std::byte* from) {
  return _mm256_cvtph_ps(load_halves(from));
}
template <>
Simd::Floats Simd::load<F8E5M2>(const std::byte* from) {
  return _mm256_cvtph_ps(
      _mm_slli_epi16(_mm_cvtepu8_epi16(load_bytes(from)), 8));
}
// The bits of an e4m3, shifted into the fields of an f16, give 2^-8 of its
// value.
template <>
Simd::Floats Simd::load<F8E4M3FN>(const std::byte* from) {
  const __m128i wide = _mm_cvtepu8_epi16(load_bytes(from));
  const __m128i magnitude = _mm_and_si128(wide, _mm_set1_epi16(0x7f));
  const __m128i nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7f));
  const __m128i sign =
      _mm_slli_epi16(_mm_and_si128(wide, _mm_set1_epi16(0x80)), 8);
  const __m128i half = _mm_or_si128(sign, _mm_slli_epi16(magnitude, 7));
  const __m256 value =
      _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0F));
  return _mm256_blendv_ps(value, floats(splat(0x7fc00000U)),
                          floats(_mm256_cvtepi16_epi32(nan)));
}

void put(std::byte* to, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}
void put(std::byte* to, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}
void put(std::byte* to, long long value) {
  std::memcpy(to, &value, sizeof value);
}

// bits + bias + (bits >> shift & 1), shifted: round to nearest even.
template <int kShift>
__m256i round_bits(__m256i bits, unsigned bias) {
  const __m256i odd =
      _mm256_and_si256(_mm256_srli_epi32(bits, kShift), splat(1));
  return _mm256_srli_epi32(
      _mm256_add_epi32(_mm256_add_epi32(bits, splat(bias)), odd), kShift);
}

__m256i select(__m256i mask, __m256i yes, __m256i no) {
  return _mm256_blendv_epi8(no, yes, mask);
}

__m128i narrow_to_halves(__m256i value) {
  const __m256i packed = _mm256_packus_epi32(value, value);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

template <class T>
struct Narrow;

template <>
struct Narrow<float> {
  static __m256i apply(__m256 value) { return integers(value); }
};
template <>
struct Narrow<BF16> {
  static __m128i apply(__m256 value) {
    const __m256i rounded = round_bits<16>(integers(value), 0x7fffU);
    const __m256i nan = integers(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    return narrow_to_halves(select(nan, splat(0x7fc0U), rounded));
  }
};
template <>
struct Narrow<F16> {
  static __m128i apply(__m256 value) {
    return _mm256_cvtps_ph(value,
                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};
struct F8Format {
  unsigned bias;          // of round_bits
  unsigned magic;         // f32 bits of what rounds a subnormal
  unsigned first_normal;  // f32 bits
  unsigned last_finite;   // f32 bits; what lies beyond becomes `large`
  unsigned large;
};

// Selects the result for finite or other values and sets the sign.
template <int kShift>
long long narrow_to_f8(__m256 value, const F8Format& format) {
  const __m256i magnitude =
      _mm256_and_si256(integers(value), splat(0x7fffffffU));
  const __m256i normal = round_bits<kShift>(magnitude, format.bias);
  const __m256i magic = splat(format.magic);
  const __m256i subnormal = _mm256_sub_epi32(
      integers(_mm256_add_ps(floats(magnitude), floats(magic))), magic);
  const __m256i small =
      _mm256_cmpgt_epi32(splat(format.first_normal), magnitude);
  const __m256i large =
      _mm256_cmpgt_epi32(magnitude, splat(format.last_finite));
  const __m256i nan = _mm256_cmpgt_epi32(magnitude, splat(0x7f800000U));
  __m256i result = select(small, subnormal, normal);
  result = select(large, splat(format.large), result);
  result = select(nan, splat(0x7f), result);
  const __m256i sign =
      _mm256_and_si256(_mm256_srli_epi32(integers(value), 24), splat(0x80));
  const __m128i halves = narrow_to_halves(_mm256_or_si256(sign, result));
  return _mm_cvtsi128_si64(_mm_packus_epi16(halves, halves));
}

template <>
struct Narrow<F8E4M3FN> {
  static long long apply(__m256 value) {
    return narrow_to_f8<20>(
        value, {0xc407ffffU, 0x46800000U, 0x3c800000U, 0x43e00000U, 0x7e});
  }
};
template <>
struct Narrow<F8E5M2> {
  static long long apply(__m256 value) {
    return narrow_to_f8<21>(
        value, {0xc80fffffU, 0x43000000U, 0x38800000U, 0x476fffffU, 0x7c});
  }
};

template <class T>
void Simd::store(std::byte* to, Floats value) {
  put(to, Narrow<T>::apply(value));
}

// Returns half a cache line of results.
template <class T>
__m256i narrow_half(const __m256* values) {
  if constexpr (sizeof(T) == 4) {
    return Narrow<T>::apply(values[0]);
  } else if constexpr (sizeof(T) == 2) {
    return _mm256_set_m128i(Narrow<T>::apply(values[1]),
                            Narrow<T>::apply(values[0]));
  } else {
    return _mm256_set_epi64x(
        Narrow<T>::apply(values[3]), Narrow<T>::apply(values[2]),
        Narrow<T>::apply(values[1]), Narrow<T>::apply(values[0]));
  }
}

template <class T>
void Simd::stream_line(std::byte* to, const Floats* values) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), narrow_half<T>(values));
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 32),
                      narrow_half<T>(values + 4 / sizeof(T)));
}

}  // namespace
}  // namespace shardprop::kernels::cpu::avx2

#define SHARDPROP_ROWS_NAMESPACE avx2
#include "rows_impl.h"
