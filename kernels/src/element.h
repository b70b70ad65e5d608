#pragma once

#include <cstdint>

namespace shardprop::kernels {

// The stored types of narrow floats. f32 is `float` itself.
struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};
struct F8E4M3FN {
  std::uint8_t bits;
};
struct F8E5M2 {
  std::uint8_t bits;
};

}  // namespace shardprop::kernels
