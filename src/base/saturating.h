// Saturating arithmetic on costs and bytes: a sum or product beyond 64 bits is
// the nearest number that 64 bits hold, never a wrapped one.
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

// The longest time that a formula gives, two years: what one operator or
// collective takes is cut off there, so that a hundred of them still add up.
inline constexpr std::int64_t kMostNanoseconds = std::int64_t{1} << 56;
// The same of a collective, 13 days: searches count in parts of a nanosecond.
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
  // As std::llround, which is a call. The rest is exact.
  const auto whole = static_cast<std::int64_t>(value);
  const double rest = value - static_cast<double>(whole);
  return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
}

// Whole nanoseconds, at most `most`; a NaN, as of 0 bytes at an
// endless rate, counts as that, too: what has no price is never the cheapest.
inline std::int64_t whole_nanoseconds(double nanoseconds,
                                      std::int64_t most = kMostNanoseconds) {
  return nanoseconds < static_cast<double>(most) ? saturated(nanoseconds)
                                                 : most;
}
inline std::int64_t to_nanoseconds(double seconds) {
  return whole_nanoseconds(seconds * 1e9);
}

}  // namespace shardprop
