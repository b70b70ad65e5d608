// Rng is xoshiro256** with SplitMix64 seeding (Blackman & Vigna). Its stream is
// the same on every machine, which the standard distributions do not guarantee.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace shardprop::solver {

// Every bit of the result depends on every bit of the input (the last step of
// SplitMix64).
inline std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

class Rng {
 public:
  explicit Rng(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15ULL;
      word = mixed(seed);
    }
  }
  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  // Returns a number in [0, bound); the bias of a 32-bit bound is below 2^-32.
  int below(int bound) {
    return static_cast<int>(
        ((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }
  // Returns a number in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace shardprop::solver
