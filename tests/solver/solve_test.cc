#include "solver/random_problem.h"

#include <shardprop/solver/solve.h>

#include <doctest/doctest.h>

#include "base/index.h"

#include <array>
#include <atomic>
#include <chrono>
#include <optional>

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
      const auto across = static_cast<std::size_t>(width);
      const std::size_t v =
          static_cast<std::size_t>(i) * across + static_cast<std::size_t>(j);
      for (auto& t : table) t = rng.below(300);
      const TableId id = builder.add_table(kChoices, kChoices, table);
      if (j + 1 < width) builder.add_edge(VariableId(v), VariableId(v + 1), id);
      if (i + 1 < width) {
        builder.add_edge(VariableId(v), VariableId(v + across), id);
      }
    }
  }
  builder.set_limit(std::int64_t{70} * width);
  return *std::move(builder).build();
}

// A limit that does not depend on the machine.
const SolveOptions kByWork{.time_limit_seconds = 1e9,
                           .work_limit = 100'000'000};

TEST_CASE("a time limit ends the search with an assignment and a bound") {
  const Problem problem = grid(30, 1);
  SolveOptions options;
  options.time_limit_seconds = 1.0;
  options.threads = 2;
  const Solution solution = solve(problem, options);
  CHECK(solution.stopped_by == StoppedBy::kTime);
  REQUIRE(solution.status == Status::kFeasible);
  CHECK(evaluate(problem, solution.assignment)->feasible());
  CHECK(evaluate(problem, solution.assignment)->cost == *solution.cost);
  CHECK(*solution.lower_bound < *solution.cost);
  CHECK(solution.gap().has_value());
  CHECK(solution.procedures.size() == kNumPasses);
}

TEST_CASE("the records of the procedures tell where work and gains come from") {
  const Problem problem = grid(12, 3);
  SolveOptions options;
  options.work_limit = 60'000'000;
  options.time_limit_seconds = 1e9;
  const Solution solution = solve(problem, options);
  REQUIRE(solution.procedures.size() == kNumPasses);
  std::uint64_t work = 0;
  std::uint64_t improvements = 0;
  for (std::size_t p = 0; p < kNumPasses; ++p) {
    const Procedure& procedure = solution.procedures[p];
    const auto pass = static_cast<Pass>(p);
    CHECK(procedure.name == pass_name(pass));
    CHECK(procedure.enabled);
    CHECK(procedure.gap_closed >= 0);
    if (procedure.runs == 0) CHECK(procedure.seconds == 0);
    // The work of extrapolation and recombination is in that of their callers.
    const bool is_called =
        pass == Pass::kExtrapolation || pass == Pass::kRecombination;
    if (!is_called) work += procedure.work;
    improvements += procedure.improvements;
  }
  CHECK(work == solution.work);
  CHECK(improvements > 0);

  // They are the same on any number of threads, apart from the clocks.
  options.threads = 2;
  CHECK(solve(problem, options).procedures == solution.procedures);

  options.passes.disable(Pass::kLocalSearch);
  const Solution without = solve(problem, options);
  const auto at = static_cast<std::size_t>(Pass::kLocalSearch);
  CHECK_FALSE(without.procedures[at].enabled);
  CHECK(without.procedures[at].runs == 0);
}

TEST_CASE("a search that is stopped returns its best assignment") {
  const Problem problem = grid(30, 2);
  std::stop_source stop;
  SolveOptions options;
  options.time_limit_seconds = 60;
  options.stop = stop.get_token();
  int reports = 0;
  options.progress = [&](const Progress& p) {
    ++reports;
    if (p.cost.has_value()) stop.request_stop();
  };
  const Solution solution = solve(problem, options);
  CHECK(reports > 0);
  CHECK(solution.status == Status::kFeasible);
  CHECK(solution.stopped_by == StoppedBy::kRequest);
}

TEST_CASE("a larger problem: the same answer to the bit on any threads") {
  const Problem problem = grid(20, 3);
  std::optional<Solution> first;
  for (const int threads : {1, 1, 2, 3, 8}) {
    SolveOptions options;
    options.time_limit_seconds = 1e12;
    options.work_limit = 40'000'000;
    options.threads = threads;
    options.seed = 11;
    const Solution solution = solve(problem, options);
    CHECK(solution.status == Status::kFeasible);
    if (!first) first = solution;
    CHECK(first->assignment == solution.assignment);
    CHECK(to_string(*first->lower_bound) == to_string(*solution.lower_bound));
    CHECK(first->work == solution.work);
  }
}

TEST_CASE("between rounds the caller is asked whether to go on") {
  const Problem problem = grid(20, 4);
  for (const bool answer : {false, true}) {
    SolveOptions options;
    options.time_limit_seconds = 1e12;
    options.work_limit = 80'000'000;
    int asked = 0;
    bool refused = false;
    Int128 last = 0;
    double before = 0;
    options.go_on = [&](const Assignment& best, double spent) {
      const auto judged = evaluate(problem, best);
      CHECK(judged->feasible());
      CHECK(!refused);
      CHECK((asked == 0 || judged->cost <= last));
      CHECK(spent >= before);
      before = spent;
      last = judged->cost;
      ++asked;
      refused = !answer && spent >= 0.5;
      return !refused;
    };
    const Solution solution = solve(problem, options);
    CHECK(solution.status == Status::kFeasible);
    CHECK(refused == !answer);
    // The caller ended one search, and the work limit the other.
    CHECK(solution.stopped_by ==
          (answer ? std::optional(StoppedBy::kWork) : std::nullopt));
    CHECK(asked > 1);
    CHECK(*solution.cost == last);
  }
}

TEST_CASE("a cost or a gap that is enough ends the search") {
  const Problem problem = grid(20, 4);
  SolveOptions options;
  options.time_limit_seconds = 1e12;
  options.work_limit = 80'000'000;
  const Solution all = solve(problem, options);
  REQUIRE(all.cost.has_value());
  CHECK(all.stopped_by == StoppedBy::kWork);
  options.enough_cost = *all.cost + *all.cost / 50;
  const Solution cheap = solve(problem, options);
  CHECK(*cheap.cost <= *options.enough_cost);
  CHECK(!cheap.stopped_by.has_value());
  options.enough_cost.reset();
  options.enough_gap = 4 * *all.gap();
  const Solution near = solve(problem, options);
  CHECK(*near.gap() <= options.enough_gap);
  CHECK(!near.stopped_by.has_value());
  options.enough_gap = 0;
  options.enough_bound = *all.lower_bound - *all.cost / 50;
  const Solution bounded = solve(problem, options);
  CHECK(*bounded.lower_bound >= *options.enough_bound);
  CHECK(*bounded.lower_bound <= *all.cost);
}

// Returns a long grid without memory limits; `more` is the seed of extra random
// costs of its choices.
Problem strip(std::optional<std::uint64_t> more = {}) {
  constexpr std::size_t kWidth = 5;
  constexpr std::size_t kLength = 24;
  constexpr std::size_t kChoices = 12;
  Rng rng(5);
  Rng beside(more.value_or(0));
  ProblemBuilder builder;
  std::vector<std::int64_t> costs(kChoices);
  std::vector<std::int64_t> table(kChoices * kChoices);
  for (std::size_t v = 0; v < kWidth * kLength; ++v) {
    for (auto& c : costs) c = rng.below(100) + (more ? beside.below(20) : 0);
    builder.add_variable(costs);
    for (const std::size_t back : {std::size_t{1}, kWidth}) {
      if (v < back || (back == 1 && v % kWidth == 0)) continue;
      for (auto& t : table) t = rng.below(1000);
      builder.add_edge(VariableId(v - back), VariableId(v),
                       builder.add_table(kChoices, kChoices, table));
    }
  }
  return *std::move(builder).build();
}

TEST_CASE("a run that is stopped before it begins keeps what was known") {
  const Problem problem = strip();
  std::stop_source stop;
  stop.request_stop();
  SolveOptions options;
  options.stop = stop.get_token();
  CHECK(solve(problem, options).status == Status::kUnknown);
  const std::vector<Assignment> known{Assignment(problem.num_variables(), 0)};
  options.known = known;
  const Solution solution = solve(problem, options);
  REQUIRE(solution.status == Status::kFeasible);
  CHECK(solution.assignment == known[0]);
  CHECK(*solution.cost == evaluate(problem, known[0])->cost);
  CHECK(*solution.lower_bound < *solution.cost);
  CHECK(solution.work == 0);
}

TEST_CASE("a search starts from the messages of a search at other costs") {
  SolveOptions options;
  options.time_limit_seconds = 1e12;
  options.work_limit = 2'000'000'000;
  Messages messages;
  options.messages = &messages;
  const Solution before = solve(strip(), options);
  REQUIRE(before.status == Status::kOptimal);
  REQUIRE(!messages.told.empty());
  const std::vector<Assignment> known{before.assignment};
  SolveOptions little;
  little.time_limit_seconds = 1e12;
  little.work_limit = 1'000'000;
  const Problem problem = strip(7);
  const Solution cold = solve(problem, little);
  little.messages = options.messages;
  little.known = known;
  const Solution warm = solve(problem, little);
  CHECK(*warm.lower_bound > *cold.lower_bound);
  CHECK(*warm.cost <= evaluate(problem, known[0])->cost);
  options.known = known;
  const Solution all = solve(problem, options);
  CHECK(all.status == Status::kOptimal);
  CHECK(*all.cost <= *warm.cost);
  CHECK(*warm.lower_bound <= *all.cost);
  options.messages = nullptr;
  options.known = {};
  CHECK(to_string(*solve(problem, options).cost) == to_string(*all.cost));
}

TEST_CASE("the bound of given messages ends a search for a bound") {
  SolveOptions options;
  options.time_limit_seconds = 1e12;
  options.work_limit = 2'000'000'000;
  Messages messages;
  options.messages = &messages;
  const Solution before = solve(strip(), options);
  REQUIRE(before.status == Status::kOptimal);
  SolveOptions bound = options;
  for (const Pass pass :
       {Pass::kLocalSearch, Pass::kProbing, Pass::kBranchAndBound,
        Pass::kFrontElimination, Pass::kLateElimination}) {
    bound.passes.disable(pass);
  }
  for (const std::optional<std::uint64_t> more :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(7)}) {
    const Problem problem = strip(more);
    const Int128 best = *solve(problem, {.time_limit_seconds = 1e12}).cost;
    bound.enough_bound = best - best / 20;
    const Solution enough = solve(problem, bound);
    REQUIRE(enough.lower_bound.has_value());
    CHECK(*enough.lower_bound <= best);
    // No goal makes the bound exceed the optimum.
    bound.enough_bound = best + 1;
    bound.work_limit = 20'000'000;
    CHECK(*solve(problem, bound).lower_bound <= best);
  }
}

TEST_CASE("elimination closes a gap that bounds and search leave open") {
  const Problem problem = strip();
  std::optional<Solution> first;
  for (const int threads : {1, 2}) {
    SolveOptions options;
    options.time_limit_seconds = 1e12;
    options.work_limit = 2'000'000'000;
    options.threads = threads;
    const Solution solution = solve(problem, options);
    CHECK(solution.status == Status::kOptimal);
    CHECK(evaluate(problem, solution.assignment)->cost == *solution.cost);
    if (first) CHECK(to_string(*first->cost) == to_string(*solution.cost));
    first = solution;
  }
  // Too little work to finish it: a bound, and no claim.
  SolveOptions little;
  little.time_limit_seconds = 1e12;
  little.work_limit = 150'000'000;
  CHECK(solve(problem, little).status == Status::kFeasible);
}

TEST_CASE("costs too large for doubles are never called optimal wrongly") {
  // Two choices differ by one unit at 2^60, which doubles cannot distinguish.
  constexpr std::int64_t kBase = (std::int64_t{1} << 59) + 1;
  ProblemBuilder builder;
  std::vector<VariableId> ids;
  ids.reserve(3);
  for (int v = 0; v < 3; ++v) {
    ids.push_back(
        builder.add_variable(std::array<std::int64_t, 2>{kBase + v, kBase}));
  }
  builder.add_edge(
      ids[0], ids[1],
      builder.add_table(2, 2, std::array<std::int64_t, 4>{0, 5, 3, 9}));
  const Problem problem = *std::move(builder).build();
  const Solution solution = solve(problem, kByWork);
  const auto truth = testing::brute_force(problem);
  REQUIRE(solution.cost.has_value());
  CHECK(*solution.cost >= *truth);
  CHECK(*solution.lower_bound <= *truth);
  if (solution.status == Status::kOptimal) CHECK(*solution.cost == *truth);
}

TEST_CASE("sums that are too large for doubles are searched all the same") {
  // Each pair of variables that choose alike costs: two halves are best.
  constexpr std::int64_t kAlike = 900'000'000'000'000'000;
  for (const int n : {10, 100}) {
    CAPTURE(n);
    ProblemBuilder builder;
    std::vector<VariableId> ids;
    for (int v = 0; v < n; ++v) {
      ids.push_back(builder.add_variable(std::array<std::int64_t, 2>{0, 0}));
      for (int u = 0; u < v; ++u) {
        const std::array<std::int64_t, 4> costs = {kAlike + u % 7, 0, 0,
                                                   kAlike + v % 5};
        builder.add_edge(ids[index(u)], ids[index(v)],
                         builder.add_table(2, 2, costs));
      }
    }
    const Problem problem = *std::move(builder).build();
    const Solution solution = solve(problem, kByWork);
    const Int128 pairs = Int128{n} / 2 * (n / 2 - 1);
    REQUIRE(solution.cost.has_value());
    CHECK(*solution.cost >= pairs * kAlike);
    CHECK(*solution.cost < (pairs + 1) * kAlike);
    REQUIRE(solution.lower_bound.has_value());
    CHECK(*solution.lower_bound <= *solution.cost);
  }
}

}  // namespace
}  // namespace shardprop::solver
