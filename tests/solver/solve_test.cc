#include "solver/random_problem.h"

#include <shardprop/solver/solve.h>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>

namespace shardprop::solver {
namespace {

// A grid with memory that binds: too large to be solved at once.
Problem grid(int width, std::uint64_t seed) {
  Rng rng(seed);
  ProblemBuilder builder;
  constexpr std::size_t kChoices = 6;
  std::vector<std::int64_t> costs(kChoices);
  std::vector<std::int64_t> bytes(kChoices);
  for (int v = 0; v < width * width; ++v) {
    for (std::size_t c = 0; c < kChoices; ++c) {
      costs[c] = rng.below(1000);
      bytes[c] = rng.below(100);
    }
    const VariableId id = builder.add_variable(costs);
    builder.add_usage(id, {v, v + 2 * width}, bytes);
  }
  std::vector<std::int64_t> table(kChoices * kChoices);
  for (int i = 0; i < width; ++i) {
    for (int j = 0; j < width; ++j) {
      const auto v = static_cast<std::size_t>(i * width + j);
      for (auto& t : table) t = rng.below(300);
      const TableId id = builder.add_table(kChoices, kChoices, table);
      if (j + 1 < width) builder.add_edge(VariableId(v), VariableId(v + 1), id);
      if (i + 1 < width) {
        builder.add_edge(VariableId(v),
                         VariableId(v + static_cast<std::size_t>(width)), id);
      }
    }
  }
  builder.set_limit(2 * width * 35);
  return *std::move(builder).build();
}

TEST_CASE("a time limit is kept, with something to show") {
  const Problem problem = grid(30, 1);
  SolveOptions options;
  options.time_limit_seconds = 1.0;
  options.threads = 2;
  const Solution solution = solve(problem, options);
  CHECK(solution.seconds < 1.5);
  REQUIRE(solution.status == Status::kFeasible);
  CHECK(evaluate(problem, solution.assignment)->feasible());
  CHECK(evaluate(problem, solution.assignment)->cost == *solution.cost);
  CHECK(*solution.lower_bound < *solution.cost);
  CHECK(*solution.gap() < 0.5);
  CHECK(!solution.passes.empty());
}

TEST_CASE("a cancelled run returns what it has") {
  const Problem problem = grid(30, 2);
  std::atomic<bool> cancelled = false;
  SolveOptions options;
  options.time_limit_seconds = 60;
  options.cancelled = &cancelled;
  int reports = 0;
  options.progress = [&](const Progress& p) {
    ++reports;
    if (p.cost.has_value()) cancelled = true;
  };
  const Solution solution = solve(problem, options);
  CHECK(reports > 0);
  CHECK(solution.status == Status::kFeasible);
  CHECK(solution.seconds < 30);
}

TEST_CASE("a larger problem: the same answer to the bit, threads included") {
  const Problem problem = grid(20, 3);
  for (const int threads : {1, 2, 4}) {
    SolveOptions options;
    options.time_limit_seconds = 1e12;
    options.work_limit = 40'000'000;
    options.threads = threads;
    options.seed = 11;
    const Solution first = solve(problem, options);
    const Solution second = solve(problem, options);
    CHECK(first.status == Status::kFeasible);
    CHECK(first.assignment == second.assignment);
    CHECK(to_string(*first.lower_bound) == to_string(*second.lower_bound));
    CHECK(first.work == second.work);
  }
}

TEST_CASE("costs too large for doubles are never called optimal wrongly") {
  // Two choices a unit apart at 2^60: doubles cannot tell them apart.
  constexpr std::int64_t kBase = (std::int64_t{1} << 59) + 1;
  ProblemBuilder builder;
  std::vector<VariableId> ids;
  for (int v = 0; v < 3; ++v) {
    ids.push_back(
        builder.add_variable(std::array<std::int64_t, 2>{kBase + v, kBase}));
  }
  builder.add_edge(
      ids[0], ids[1],
      builder.add_table(2, 2, std::array<std::int64_t, 4>{0, 5, 3, 9}));
  const Problem problem = *std::move(builder).build();
  const Solution solution =
      solve(problem, SolveOptions{.time_limit_seconds = 1});
  const auto truth = testing::brute_force(problem);
  REQUIRE(solution.cost.has_value());
  CHECK(*solution.cost >= *truth);
  CHECK(*solution.lower_bound <= *truth);
  if (solution.status == Status::kOptimal) CHECK(*solution.cost == *truth);
}

}  // namespace
}  // namespace shardprop::solver
