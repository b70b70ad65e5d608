#pragma once

#include <cstdint>

#include "../convert.h"

// Loads, stores and conversions of the device code. The code also compiles for
// the host, on which the tests run it thread by thread.
namespace shardprop::kernels::cuda {

// Elements that are moved unchanged.
template <int kSize>
struct alignas(kSize) Bytes {
  std::uint8_t bytes[kSize];
};

// Up to 16 bytes in registers. Indices must be constants after unrolling.
template <int kWords>
struct alignas(4 * kWords) Words {
  std::uint32_t word[kWords];
};

template <int kWords>
SHARDPROP_HD Words<kWords> load_words(std::uint64_t address) {
  return *reinterpret_cast<const Words<kWords>*>(address);
}

template <int kWords>
SHARDPROP_HD void store_words(std::uint64_t address, Words<kWords> value) {
  *reinterpret_cast<Words<kWords>*>(address) = value;
}

SHARDPROP_HD std::uint32_t funnel_right(std::uint32_t low, std::uint32_t high,
                                        std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(low, high, bits);
#else
  const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
  return static_cast<std::uint32_t>(both >> bits);
#endif
}

// Loads a vector that is not aligned by two aligned loads. It shifts the result
// by words first, then by bytes.
template <int kWords>
SHARDPROP_HD Words<kWords> load_shifted(std::uint64_t address) {
  constexpr std::uint64_t kMask = 4 * kWords - 1;
  const Words<kWords> low = load_words<kWords>(address & ~kMask);
  const Words<kWords> high =
      load_words<kWords>((address & ~kMask) + 4 * kWords);
  const auto offset = static_cast<std::uint32_t>(address & kMask);
  std::uint32_t both[2 * kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    both[i] = low.word[i];
    both[kWords + i] = high.word[i];
  }
#pragma unroll
  for (int step = kWords / 2; step > 0; step /= 2) {
    const bool shift = (offset / 4 & static_cast<std::uint32_t>(step)) != 0;
#pragma unroll
    for (int i = 0; i + step < 2 * kWords; ++i) {
      both[i] = shift ? both[i + step] : both[i];
    }
  }
  Words<kWords> result;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    result.word[i] = funnel_right(both[i], both[i + 1], offset % 4 * 8);
  }
  return result;
}

template <class T>
SHARDPROP_HD T load_element(std::uint64_t address) {
  return *reinterpret_cast<const T*>(address);
}

template <class T>
SHARDPROP_HD void store_element(std::uint64_t address, T value) {
  *reinterpret_cast<T*>(address) = value;
}

// Converts one element. Types that are moved as bytes have no scale.
template <class To, class From>
struct Conversion {
  static constexpr bool kMoves = false;
  static SHARDPROP_HD To apply(From value, double scale) {
    return convert<To>(value, static_cast<float>(scale));
  }
};

template <int kSize>
struct Conversion<Bytes<kSize>, Bytes<kSize>> {
  static constexpr bool kMoves = true;
  static SHARDPROP_HD Bytes<kSize> apply(Bytes<kSize> value, double) {
    return value;
  }
};

template <>
struct Conversion<double, double> {
  static constexpr bool kMoves = false;
  static SHARDPROP_HD double apply(double value, double scale) {
    return value * scale;
  }
};

// Loads an element that is not aligned to its size, byte by byte.
SHARDPROP_HD std::uint64_t load_loose(std::uint64_t address, int size) {
  std::uint64_t value = 0;
  for (int i = 0; i < size; ++i) {
    value |= static_cast<std::uint64_t>(load_element<std::uint8_t>(address + i))
             << (8 * i);
  }
  return value;
}

SHARDPROP_HD void store_loose(std::uint64_t address, std::uint64_t value,
                              int size) {
  for (int i = 0; i < size; ++i) {
    store_element(address + i, static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

}  // namespace shardprop::kernels::cuda
