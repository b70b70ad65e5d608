#include <doctest/doctest.h>
#include <shardprop/program/random_bits.h>

#include <array>
#include <cstdint>
#include <set>

namespace shardprop {
namespace {

// The answers come from the Random123 library (kat_vectors, philox4x32 10).
TEST_CASE("Philox draws what its authors' vectors say") {
  using Four = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) ==
        Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
               {0xffffffff, 0xffffffff}) ==
        Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
               {0xa4093822, 0x299f31d0}) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("seed, node, element and word are all told apart") {
  std::set<std::uint32_t> seen;
  for (std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32}) {
    for (std::uint32_t node : {0U, 7U}) {
      for (std::uint64_t element : {0ULL, 1ULL, 1ULL << 32}) {
        for (std::uint32_t word = 0; word < 6; ++word) {
          seen.insert(random_bits(seed, node, element, word));
        }
      }
    }
  }
  CHECK(seen.size() == 3 * 2 * 3 * 6);
}

TEST_CASE("a word is one of the four numbers of its block") {
  const auto block = philox({5, 1, 3, 1}, {9, 2});
  const std::uint64_t seed = 9 + (2ULL << 32);
  const std::uint64_t element = 5 + (1ULL << 32);
  for (std::uint32_t i = 0; i < 4; ++i) {
    CHECK(random_bits(seed, 3, element, 4 + i) == block[i]);
  }
}

}  // namespace
}  // namespace shardprop
