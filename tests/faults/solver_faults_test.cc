#include "faults/failing_machine.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shardprop::solver {
namespace {

// A grid with memory that binds: takes a search, and threads.
Problem grid(int width) {
  ProblemBuilder builder;
  std::uint64_t state = 7;
  const auto below = [&](std::uint64_t most) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state >> 33U) % most);
  };
  constexpr std::size_t kChoices = 5;
  std::vector<std::int64_t> costs(kChoices);
  std::vector<std::int64_t> bytes(kChoices);
  for (int v = 0; v < width * width; ++v) {
    for (std::size_t c = 0; c < kChoices; ++c) {
      costs[c] = below(1000);
      bytes[c] = below(100);
    }
    const VariableId id = builder.add_variable(costs);
    builder.add_usage(id, {v, v + 2 * width}, bytes);
  }
  std::vector<std::int64_t> table(kChoices * kChoices);
  for (int v = 0; v < width * width; ++v) {
    for (const int other : {v + 1, v + width}) {
      if (other >= width * width) continue;
      for (std::int64_t& cost : table) cost = below(1000);
      builder.add_edge(VariableId(static_cast<std::size_t>(v)),
                       VariableId(static_cast<std::size_t>(other)),
                       builder.add_table(kChoices, kChoices, table));
    }
  }
  builder.set_limit(75 * width);
  return testing::value_of(std::move(builder).build());
}

SolveOptions some_work(int threads) {
  SolveOptions options;
  options.time_limit_seconds = 1e12;
  options.work_limit = 30'000'000;
  options.threads = threads;
  return options;
}

void check(const Problem& problem, const Solution& solution) {
  if (solution.failure) {
    CHECK(solution.failure->code == ErrorCode::kOutOfMemory);
  }
  if (!solution.cost) return;
  const auto judged = evaluate(problem, solution.assignment);
  REQUIRE(judged.has_value());
  CHECK(judged->feasible());
  CHECK(to_string(judged->cost) == to_string(*solution.cost));
}

TEST_CASE("without memory the solver ends with what it knows") {
  const Problem problem = grid(12);
  for (const int threads : {1, 3}) {
    failing_machine::heal();
    const Solution whole = solve(problem, some_work(threads));
    const std::int64_t needed = failing_machine::allocations();
    REQUIRE(whole.cost);
    REQUIRE(!whole.failure);
    int refused = 0;
    int with_answer = 0;
    const int tries = testing::counted(30, 120);
    for (int i = 0; i < tries; ++i) {
      // The solver allocates most of its state early.
      const std::int64_t at =
          i < tries / 2 ? i * 80 : needed * (i - tries / 2) * 2 / tries;
      failing_machine::memory_after(at);
      const Solution solution = solve(problem, some_work(threads));
      failing_machine::heal();
      CAPTURE(at);
      check(problem, solution);
      refused += solution.failure ? 1 : 0;
      with_answer += solution.failure && solution.cost ? 1 : 0;
    }
    CHECK(refused > tries / 2);
    CHECK(with_answer > 0);
  }
}

TEST_CASE("a known assignment is kept with its cost or not at all") {
  const Problem problem = grid(3);
  const Solution whole = solve(problem, some_work(1));
  REQUIRE(whole.cost);
  SolveOptions options = some_work(1);
  options.known = {&whole.assignment, 1};
  failing_machine::heal();
  REQUIRE(!solve(problem, options).failure);
  const std::int64_t needed = failing_machine::allocations();
  int with_answer = 0;
  // The solver begins with the known assignments.
  for (std::int64_t at = 0; at < std::min<std::int64_t>(needed, 1000); ++at) {
    failing_machine::memory_after(at);
    const Solution solution = solve(problem, options);
    failing_machine::heal();
    CAPTURE(at);
    check(problem, solution);
    with_answer += solution.failure && solution.cost ? 1 : 0;
  }
  CHECK(with_answer > 0);
}

TEST_CASE("large allocations that fail are said to be the cause") {
  const Problem problem = grid(30);
  failing_machine::memory_above(1 << 12);
  const Solution solution = solve(problem, some_work(2));
  failing_machine::heal();
  REQUIRE(solution.failure);
  CHECK(solution.failure->code == ErrorCode::kOutOfMemory);
  CHECK(!solution.failure->help.empty());
}

TEST_CASE("a search without its threads gives the same answer") {
  const Problem problem = grid(12);
  failing_machine::heal();
  const Solution with = solve(problem, some_work(4));
  CHECK(failing_machine::threads() > 0);
  for (const std::int64_t threads : {0, 2}) {
    failing_machine::threads_after(threads);
    const Solution without = solve(problem, some_work(4));
    failing_machine::heal();
    CHECK(!without.failure);
    CHECK(with.assignment == without.assignment);
    CHECK(with.work == without.work);
  }
}

TEST_CASE("options out of bounds are a failure, not a run") {
  const Problem problem = grid(3);
  SolveOptions options;
  options.threads = 0;
  const Solution solution = solve(problem, options);
  REQUIRE(solution.failure);
  CHECK(solution.failure->code == ErrorCode::kInvalidArgument);
  CHECK(solution.status == Status::kUnknown);
  CHECK(!solution.cost);
}

}  // namespace
}  // namespace shardprop::solver
