#include <immintrin.h>

#include "../element.h"
#include "rows.h"

namespace shardprop::kernels::cpu::avx512 {
namespace {

__m512i integers(__m512 value) { return _mm512_castps_si512(value); }
__m512 floats(__m512i value) { return _mm512_castsi512_ps(value); }
__m512i splat(unsigned value) {
  return _mm512_set1_epi32(static_cast<int>(value));
}

// The formulas of convert.h, sixteen at a time.
struct Simd {
  static constexpr int kWidth = 16;
  static constexpr const char* kName = "avx512";
  using Floats = __m512;

  template <class T>
  static Floats load(const std::byte* from);
  template <class T>
  static void store(std::byte* to, Floats value);
  static Floats multiply(Floats value, float scale) {
    return _mm512_mul_ps(value, _mm512_set1_ps(scale));
  }

  // Streams a cache line of results; `values` has the vectors that fill it.
  template <class T>
  static void stream_line(std::byte* to, const Floats* values);
  static void copy_line(std::byte* to, const std::byte* from) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to),
                        _mm512_loadu_si512(from));
  }
};

__m128i load_bytes(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
__m256i load_halves(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

template <>
Simd::Floats Simd::load<float>(const std::byte* from) {
  return _mm512_loadu_ps(from);
}
template <>
Simd::Floats Simd::load<BF16>(const std::byte* from) {
  return floats(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(load_halves(from)), 16));
}
template <>
Simd::Floats Simd::load<F16>(const std::byte* from) {
  return _mm512_cvtph_ps(load_halves(from));
}
template <>
Simd::Floats Simd::load<F8E5M2>(const std::byte* from) {
  return _mm512_cvtph_ps(
      _mm256_slli_epi16(_mm256_cvtepu8_epi16(load_bytes(from)), 8));
}
// The bits of an e4m3, shifted into the fields of an f16, give 2^-8 of its
// value.
template <>
Simd::Floats Simd::load<F8E4M3FN>(const std::byte* from) {
  const __m256i wide = _mm256_cvtepu8_epi16(load_bytes(from));
  const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
  const __mmask16 nan =
      _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7f));
  const __m256i sign =
      _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x80)), 8);
  const __m256i half = _mm256_or_si256(sign, _mm256_slli_epi16(magnitude, 7));
  const __m512 value =
      _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0F));
  return _mm512_mask_blend_ps(nan, value, floats(splat(0x7fc00000U)));
}

void put(std::byte* to, __m512i value) { _mm512_storeu_si512(to, value); }
void put(std::byte* to, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}
void put(std::byte* to, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}

// bits + bias + (bits >> shift & 1), shifted: round to nearest even.
template <int kShift>
__m512i round_bits(__m512i bits, unsigned bias) {
  const __m512i odd =
      _mm512_and_si512(_mm512_srli_epi32(bits, kShift), splat(1));
  return _mm512_srli_epi32(
      _mm512_add_epi32(_mm512_add_epi32(bits, splat(bias)), odd), kShift);
}

struct F8Format {
  unsigned bias;          // of round_bits
  unsigned magic;         // f32 bits of what rounds a subnormal
  unsigned first_normal;  // f32 bits
  unsigned first_large;   // f32 bits, of what becomes `large`
  unsigned large;
};

template <class T>
struct Narrow;

template <>
struct Narrow<float> {
  static __m512i apply(__m512 value) { return integers(value); }
};
// The high half of each element is the bf16.
__m512i round_to_bf16(__m512 value) {
  const __m512i bits = integers(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), splat(1));
  const __m512i rounded =
      _mm512_add_epi32(_mm512_add_epi32(bits, splat(0x7fffU)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(rounded, nan, splat(0x7fc00000U));
}

template <>
struct Narrow<BF16> {
  static __m256i apply(__m512 value) {
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_to_bf16(value), 16));
  }
};
template <>
struct Narrow<F16> {
  static __m256i apply(__m512 value) {
    return _mm512_cvtps_ph(value,
                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};
// Selects the result for finite or other values and sets the sign.
template <int kShift>
__m128i narrow_to_f8(__m512 value, const F8Format& format) {
  const __m512i magnitude =
      _mm512_and_si512(integers(value), splat(0x7fffffffU));
  const __m512i normal = round_bits<kShift>(magnitude, format.bias);
  const __m512i magic = splat(format.magic);
  const __m512i subnormal = _mm512_sub_epi32(
      integers(_mm512_add_ps(floats(magnitude), floats(magic))), magic);
  const __mmask16 small =
      _mm512_cmplt_epi32_mask(magnitude, splat(format.first_normal));
  const __mmask16 large =
      _mm512_cmpge_epi32_mask(magnitude, splat(format.first_large));
  const __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, splat(0x7f800000U));
  __m512i result = _mm512_mask_blend_epi32(small, normal, subnormal);
  result = _mm512_mask_blend_epi32(large, result, splat(format.large));
  result = _mm512_mask_blend_epi32(nan, result, splat(0x7f));
  const __m512i sign =
      _mm512_and_si512(_mm512_srli_epi32(integers(value), 24), splat(0x80));
  return _mm512_cvtepi32_epi8(_mm512_or_si512(sign, result));
}

template <>
struct Narrow<F8E4M3FN> {
  static __m128i apply(__m512 value) {
    return narrow_to_f8<20>(
        value, {0xc407ffffU, 0x46800000U, 0x3c800000U, 0x43e00001U, 0x7e});
  }
};
template <>
struct Narrow<F8E5M2> {
  static __m128i apply(__m512 value) {
    return narrow_to_f8<21>(
        value, {0xc80fffffU, 0x43000000U, 0x38800000U, 0x47700000U, 0x7c});
  }
};

template <class T>
void Simd::store(std::byte* to, Floats value) {
  put(to, Narrow<T>::apply(value));
}

__m256i join(__m128i low, __m128i high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
__m512i join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

template <class T>
void Simd::stream_line(std::byte* to, const Floats* values) {
  __m512i line;
  if constexpr (sizeof(T) == 4) {
    line = Narrow<T>::apply(values[0]);
  } else if constexpr (__is_same(T, BF16)) {
    // Takes the odd halves of both vectors in a single shuffle.
    alignas(64) static constexpr std::uint16_t kOdd[32] = {
        1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
        33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    line = _mm512_permutex2var_epi16(round_to_bf16(values[0]),
                                     _mm512_load_si512(kOdd),
                                     round_to_bf16(values[1]));
  } else if constexpr (sizeof(T) == 2) {
    line = join(Narrow<T>::apply(values[0]), Narrow<T>::apply(values[1]));
  } else {
    line = join(join(Narrow<T>::apply(values[0]), Narrow<T>::apply(values[1])),
                join(Narrow<T>::apply(values[2]), Narrow<T>::apply(values[3])));
  }
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line);
}

}  // namespace
}  // namespace shardprop::kernels::cpu::avx512

#define SHARDPROP_ROWS_NAMESPACE avx512
#include "rows_impl.h"
