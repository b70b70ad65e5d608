#include "base/saturating.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

namespace shardprop {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST_CASE("sums and products stay at the edge they would leave") {
  CHECK(sat_add(2, -5) == -3);
  CHECK(sat_add(kMostInt, 1) == kMostInt);
  CHECK(sat_add(kLeastInt, -1) == kLeastInt);
  CHECK(sat_add(kMostInt, kLeastInt) == -1);
  CHECK(sat_mul(-3, 4) == -12);
  CHECK(sat_mul(std::int64_t{1} << 40, std::int64_t{1} << 40) == kMostInt);
  CHECK(sat_mul(kLeastInt, -1) == kMostInt);
  CHECK(sat_mul(kLeastInt, 2) == kLeastInt);
}

TEST_CASE("numbers are rounded, and cut off where 64 bits end") {
  for (const double edge : {0.0, 0.5, 1.0, 1.5, 7.5, 1e6 + 0.5, 0x1p51 + 0.5,
                            0x1p52 + 1, 0x1p53 + 2, 0x1p62}) {
    for (const double near :
         {std::nextafter(edge, -1e300), edge, std::nextafter(edge, 1e300)}) {
      CHECK(saturated(near) == std::llround(near));
      CHECK(saturated(-near) == std::llround(-near));
    }
  }
  CHECK(saturated(2.5) == 3);
  CHECK(saturated(-2.5) == -3);
  CHECK(saturated(0x1p62) == std::int64_t{1} << 62);
  CHECK(saturated(0x1p63) == kMostInt);
  CHECK(saturated(kInf) == kMostInt);
  CHECK(saturated(-kInf) == kLeastInt);
  CHECK(saturated(WideInt{kMostInt} + 1) == kMostInt);
  CHECK(saturated(WideInt{kLeastInt} - 1) == kLeastInt);
}

TEST_CASE("times are positive, whatever they are made of") {
  CHECK(to_nanoseconds(1.5e-9) == 2);
  CHECK(to_nanoseconds(1) == 1'000'000'000);
  CHECK(to_nanoseconds(1e30) == kMostNanoseconds);
  CHECK(to_nanoseconds(kInf) == kMostNanoseconds);
  CHECK(to_nanoseconds(std::numeric_limits<double>::quiet_NaN()) ==
        kMostNanoseconds);
  // A hundred of the longest still add up.
  CHECK(kMostNanoseconds < kMostInt / 100);
}

}  // namespace
}  // namespace shardprop
