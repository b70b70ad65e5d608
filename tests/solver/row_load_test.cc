#include "solver/model/row_load.h"
#include "solver/model/rng.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace shardprop::solver {
namespace {

TEST_CASE("row loads agree with plain arrays under random adds") {
  Rng rng(1);
  for (const int rows : {1, 2, 3, 7, 8, 9, 64, 100}) {
    std::vector<std::int64_t> capacity(static_cast<std::size_t>(rows));
    for (auto& c : capacity) c = rng.below(50);
    RowLoad load(capacity);
    std::vector<std::int64_t> plain(capacity.size());
    std::transform(capacity.begin(), capacity.end(), plain.begin(),
                   [](std::int64_t c) { return -c; });
    for (int step = 0; step < 400; ++step) {
      const int lo = rng.below(rows);
      const int hi = lo + 1 + rng.below(rows - lo);
      const std::int64_t bytes = rng.below(41) - 20;
      load.add(lo, hi, bytes);
      for (int r = lo; r < hi; ++r) plain[static_cast<std::size_t>(r)] += bytes;
      REQUIRE(load.max() == *std::max_element(plain.begin(), plain.end()));
      REQUIRE(plain[static_cast<std::size_t>(load.row_of_max())] == load.max());
      const int from = rng.below(rows);
      const int to = from + 1 + rng.below(rows - from);
      REQUIRE(load.max(from, to) ==
              *std::max_element(plain.begin() + from, plain.begin() + to));
      std::vector<int> positive;
      load.for_each_positive([&](int row, std::int64_t value) {
        CHECK(value == plain[static_cast<std::size_t>(row)]);
        positive.push_back(row);
        return true;
      });
      REQUIRE(positive.size() == static_cast<std::size_t>(std::count_if(
                                     plain.begin(), plain.end(),
                                     [](std::int64_t x) { return x > 0; })));
    }
  }
}

TEST_CASE("without memory rows no assignment overflows") {
  RowLoad load({});
  CHECK(load.max() < 0);
}

}  // namespace
}  // namespace shardprop::solver
