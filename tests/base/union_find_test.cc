#include "base/union_find.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace shardprop {
namespace {

TEST_CASE("elements are alone until they are joined") {
  UnionFind sets(3);
  CHECK(!sets.are_joined(0, 2));
  sets.join(0, 2);
  CHECK(sets.are_joined(0, 2));
  CHECK(!sets.are_joined(0, 1));
  CHECK(sets.root(0) == 2);
  CHECK(sets.add() == 3);
  CHECK(sets.root(3) == 3);
}

TEST_CASE("joined sets equal the sets of a table of labels") {
  std::mt19937 rng(7);
  for (int round = 0; round < 50; ++round) {
    const std::size_t size = 1 + rng() % 30;
    UnionFind sets(size);
    std::vector<std::size_t> label(size);
    for (std::size_t i = 0; i < size; ++i) label[i] = i;
    for (std::size_t step = 0; step < size; ++step) {
      const std::size_t a = rng() % size;
      const std::size_t b = rng() % size;
      sets.join(a, b);
      const std::size_t old = label[a];
      for (std::size_t& l : label) l = l == old ? label[b] : l;
      for (std::size_t i = 0; i < size; ++i) {
        CHECK(sets.are_joined(i, b) == (label[i] == label[b]));
      }
    }
  }
}

}  // namespace
}  // namespace shardprop
