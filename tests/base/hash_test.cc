#include <shardprop/base/hash.h>
#include <shardprop/base/inline_vector.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

namespace shardprop {
namespace {

TEST_CASE("small neighbouring values hash apart") {
  std::unordered_set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (std::uint64_t value = 0; value < 200; ++value) {
      seen.insert(hash_mix(seed, value));
    }
  }
  CHECK(seen.size() == 200 * 200);
}

TEST_CASE("a range's hash knows its order and its length") {
  const auto hash = [](const std::vector<int>& v) { return hash_range(0, v); };
  CHECK(hash({1, 2}) != hash({2, 1}));
  CHECK(hash({0}) != hash({0, 0}));
  CHECK(hash({}) != hash({0}));
  CHECK(hash({1, 2}) == hash({1, 2}));
}

TEST_CASE("an inline vector hashes by its elements, wherever they live") {
  InlineVector<int, 2> grown{1, 2, 3};
  grown.pop_back();
  const InlineVector<int, 2> small{1, 2};
  CHECK(std::hash<InlineVector<int, 2>>{}(grown) ==
        std::hash<InlineVector<int, 2>>{}(small));
}

}  // namespace
}  // namespace shardprop
