// Problems whose best plan a person sees at once: none may end without a plan.
#include "solver/random_problem.h"
#include "support/property.h"

#include <shardprop/solver/solve.h>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace shardprop::solver {
namespace {

using Pair = std::array<std::int64_t, 2>;

// Work, so that a busy machine does not matter.
Solution solved(const Problem& problem, std::uint64_t work) {
  SolveOptions options;
  options.time_limit_seconds = 1e12;
  options.work_limit = work;
  Solution solution = solve(problem, options);
  REQUIRE(solution.cost.has_value());
  CHECK(evaluate(problem, solution.assignment)->feasible());
  return solution;
}

void check_optimum(const Problem& problem, Int128 cost) {
  const Solution solution = solved(problem, 1'000'000'000);
  CHECK(to_string(*solution.cost) == to_string(cost));
  CHECK(solution.status == Status::kOptimal);
}

// Checks that the gap is at most `percent`.
void check_close(const Problem& problem, double percent) {
  const Solution solution = solved(problem, 60'000'000);
  REQUIRE(solution.gap().has_value());
  CHECK(100 * *solution.gap() <= percent);
}

TEST_CASE("identical variables with memory for half of them are split") {
  for (const int n : {2, 10, 100, 1'000, 3'001}) {
    CAPTURE(n);
    ProblemBuilder builder;
    for (int v = 0; v < n; ++v) {
      builder.add_usage(builder.add_variable(Pair{1, 2}), {0, 1}, Pair{1, 0});
    }
    builder.set_limit(n / 2);
    check_optimum(*std::move(builder).build(), n / 2 + 2 * (n - n / 2));
  }
}

TEST_CASE("alike, in windows of their own") {
  constexpr int kWindows = 100;
  constexpr int kInOne = 10;
  ProblemBuilder builder;
  for (int v = 0; v < kWindows * kInOne; ++v) {
    builder.add_usage(builder.add_variable(Pair{1, 5}),
                      {v / kInOne, v / kInOne + 1}, Pair{4, 1});
  }
  // 4 k + (10 - k) <= 25: five of ten.
  builder.set_limit(25);
  check_optimum(*std::move(builder).build(), Int128{kWindows} * (5 + 5 * 5));
}

TEST_CASE("all but the first choice hold nothing") {
  ProblemBuilder builder;
  for (int v = 0; v < 5'000; ++v) {
    builder.add_usage(builder.add_variable(Pair{0, 1}), {0, 5'000},
                      Pair{1'000'000, 0});
  }
  builder.set_limit(0);
  check_optimum(*std::move(builder).build(), 5'000);
}

TEST_CASE("a chain that must change sides together") {
  const int length = shardprop::testing::full_counts() ? 1'000 : 400;
  ProblemBuilder builder;
  std::vector<VariableId> chain;
  for (int v = 0; v < length; ++v) {
    chain.push_back(builder.add_variable(Pair{0, 3}));
    builder.add_usage(chain.back(), {v, v + 2}, Pair{10, 1});
  }
  const std::array<std::int64_t, 4> dear{0, 1'000, 1'000, 0};
  const TableId table = builder.add_table(2, 2, dear);
  for (int v = 0; v + 1 < length; ++v) {
    builder.add_edge(chain[static_cast<std::size_t>(v)],
                     chain[static_cast<std::size_t>(v) + 1], table);
  }
  builder.set_limit(11);
  // Two neighbours at the first choice hold 20: all go to the second.
  check_optimum(*std::move(builder).build(), 3 * length);
}

TEST_CASE("knapsacks of random values are filled to within a percent") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    Rng rng(seed);
    ProblemBuilder builder;
    std::int64_t all = 0;
    for (int v = 0; v < 500; ++v) {
      const std::int64_t bytes = 1 + rng.below(1'000);
      all += bytes;
      builder.add_usage(builder.add_variable(Pair{0, 1 + rng.below(1'000)}),
                        {0, 1}, Pair{bytes, 0});
    }
    builder.set_limit(all / 3);
    check_close(*std::move(builder).build(), 1);
  }
}

TEST_CASE("random lifetimes, each choice half the bytes at twice the cost") {
  Rng rng(4);
  ProblemBuilder builder;
  for (int v = 0; v < 600; ++v) {
    const std::array<std::int64_t, 4> costs{10, 20, 40, 80};
    const std::array<std::int64_t, 4> bytes{800, 400, 200, 100};
    const int lo = rng.below(200);
    builder.add_usage(builder.add_variable(costs), {lo, lo + 1 + rng.below(50)},
                      bytes);
  }
  // About 75 variables are live at a time, and their cheapest choices need
  // three times the limit.
  builder.set_limit(20'000);
  check_close(*std::move(builder).build(), 2);
}

}  // namespace
}  // namespace shardprop::solver
