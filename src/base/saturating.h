// Saturating arithmetic on costs and bytes. A sum or product that does not fit
// 64 bits becomes the nearest number that does; it never wraps.
//
//   sat_add(kMostInt, 1) == kMostInt
//   sat_mul(std::int64_t{1} << 40, std::int64_t{1} << 40) == kMostInt
//   to_nanoseconds(1e30) == kMostNanoseconds
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace shardprop {

__extension__ typedef __int128 WideInt;  // NOLINT: ISO C++ has no such name

inline constexpr std::int64_t kLeastInt =
    std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kMostInt =
    std::numeric_limits<std::int64_t>::max();

// kMostNanoseconds is the longest time of one operator or collective: two
// years. A hundred times this time still fits 64 bits.
inline constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 56;
// The limit for one collective is 13 days, because searches count in fractions
// of a nanosecond.
inline constexpr std::int64_t kMostTransferNanoseconds = std::int64_t{1} << 50;

constexpr std::int64_t saturated(WideInt value) {
  if (value < kLeastInt) return kLeastInt;
  return value > kMostInt ? kMostInt : static_cast<std::int64_t>(value);
}

constexpr std::int64_t sat_add(std::int64_t a, std::int64_t b) {
  return saturated(WideInt{a} + b);
}

constexpr std::int64_t sat_mul(std::int64_t a, std::int64_t b) {
  return saturated(WideInt{a} * b);
}

// The nearest integer that 64 bits hold. Precondition: not NaN.
inline std::int64_t saturated(double value) {
  constexpr double kEdge = 0x1p63;
  if (value <= -kEdge) return kLeastInt;
  if (value >= kEdge) return kMostInt;
  // This equals std::llround without a function call; the rest is exact.
  const auto whole = static_cast<std::int64_t>(value);
  const double rest = value - static_cast<double>(whole);
  return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
}

// Returns whole nanoseconds, at most `most`. A NaN (0 bytes at an infinite
// rate) also becomes `most`, so an unknown price is never the cheapest.
inline std::int64_t whole_nanoseconds(double nanoseconds,
                                      std::int64_t most = kMostNanoseconds) {
  return nanoseconds < static_cast<double>(most) ? saturated(nanoseconds)
                                                 : most;
}
inline std::int64_t to_nanoseconds(double seconds) {
  return whole_nanoseconds(seconds * 1e9);
}

}  // namespace shardprop
