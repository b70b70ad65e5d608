// spread_out() returns numbers that spread evenly over 0 to 1.
//
//   spread_out(1, 2)  // 1/2, and then 1/4, 3/4, 1/8, 5/8, ...
#pragma once

#include <cstdint>

namespace shardprop {

// Returns element `i` of the van der Corput sequence in `base`.
inline double spread_out(std::uint32_t i, std::uint32_t base) {
  double out = 0;
  double digit = 1.0 / base;
  for (; i != 0; i /= base, digit /= base) out += digit * (i % base);
  return out;
}

}  // namespace shardprop
