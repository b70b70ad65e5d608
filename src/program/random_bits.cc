#include <shardprop/program/random_bits.h>

namespace shardprop {
namespace {

constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

constexpr std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = kMultiplier0 * counter[0];
    const std::uint64_t b = kMultiplier1 * counter[2];
    counter = {high(b) ^ counter[1] ^ key[0], low(b),
               high(a) ^ counter[3] ^ key[1], low(a)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

std::uint32_t random_bits(std::uint64_t seed, std::uint32_t node,
                          std::uint64_t element, std::uint32_t word) {
  return philox({low(element), high(element), node, word / 4},
                {low(seed), high(seed)})[word % 4];
}

}  // namespace shardprop
