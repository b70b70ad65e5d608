// SearchWorker is the local search of one thread.
#include "solver/search/search_worker.h"
#include "solver/presolve/reduce.h"
#include "solver/random_problem.h"

#include <shardprop/solver/pass.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::solver {
namespace {

using testing::random_problem;

constexpr std::uint64_t kRoundWork = 20'000;
// More than the first cycle.
constexpr std::uint64_t kCycleWork = 10'000'000;

// A core of a problem to which no pass was applied.
class PlainCore {
 public:
  explicit PlainCore(const Problem& problem)
      : network_(problem), core_(network_, 1e12) {}
  const Core& operator*() const { return core_; }

 private:
  Network network_;
  Core core_;
};

double cost_of_choices(const Core& core, const std::vector<int>& choices) {
  double cost = 0;
  for (int v = 0; v < core.size(); ++v) cost += core.cost(v)[choices[index(v)]];
  for (const CoreEdge& edge : core.edges) {
    cost += edge.table[choices[index(edge.a)] * core.choices(edge.b) +
                       choices[index(edge.b)]];
  }
  return cost;
}

bool fits_rows(const Core& core, const std::vector<int>& choices) {
  std::vector<std::int64_t> load(core.capacity.size(), 0);
  for (int v = 0; v < core.size(); ++v) {
    for (const CoreSegment& segment : core.segments(v)) {
      for (int row = segment.lo; row < segment.hi; ++row) {
        load[index(row)] += core.bytes_of(segment)[choices[index(v)]];
      }
    }
  }
  for (std::size_t row = 0; row < load.size(); ++row) {
    if (load[row] > core.capacity[row]) return false;
  }
  return true;
}

// Three variables in one row. The choices of each one cost and take:
//   0: 5 and 7 bytes, 1: 9 and 2 bytes, 2: 3 and 2 bytes
Problem three_in_a_row(std::int64_t limit) {
  ProblemBuilder builder;
  const std::vector<std::int64_t> costs{5, 9, 3};
  const std::vector<std::int64_t> bytes{7, 2, 2};
  for (int v = 0; v < 3; ++v) {
    const VariableId id = builder.add_variable(costs);
    builder.add_usage(id, {0, 2}, bytes);
  }
  builder.set_limit(limit);
  return *std::move(builder).build();
}

TEST_CASE("the leanest choices take the fewest bytes, then cost least") {
  const PlainCore core(three_in_a_row(1000));
  CHECK(leanest(*core) == std::vector<int>{2, 2, 2});
}

TEST_CASE("a worker without a guide does nothing") {
  const PlainCore core(three_in_a_row(6));
  SearchWorker worker(*core, 1);
  worker.run(kRoundWork, Budget());
  CHECK(worker.work() == 0);
  CHECK(worker.best().empty());
  CHECK(worker.best_cost() == kInfinity);
}

TEST_CASE("the best assignment of a worker fits and costs what it says") {
  Rng rng(31);
  int found = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_problem(rng, {.most_assignments = 400});
    const PlainCore core(problem);
    if ((*core).size() == 0) continue;
    const std::vector<int> start = leanest(*core);
    SearchWorker worker(*core, 7);
    double before = kInfinity;
    for (int round = 0; round < 6; ++round) {
      const bool has_plan = !worker.best().empty();
      const std::vector<int> best = worker.best();
      worker.guide({.best = has_plan ? &best : nullptr,
                    .best_cost = worker.best_cost(),
                    .decoded = &start});
      worker.run(kRoundWork, Budget());
      CHECK(worker.best_cost() <= before);
      before = worker.best_cost();
      if (worker.best().empty()) continue;
      ++found;
      CHECK(fits_rows(*core, worker.best()));
      CHECK(cost_of_choices(*core, worker.best()) == doctest::Approx(before));
    }
    const auto truth = testing::brute_force(problem);
    if (truth && !worker.best().empty() && before < (*core).ceiling) {
      CHECK(before + static_cast<double>((*core).offset) + 1e-6 >=
            static_cast<double>(*truth));
    }
  }
  CHECK(found > 100);
}

TEST_CASE("a worker takes the better assignment of another thread") {
  const PlainCore core(three_in_a_row(1000));
  const std::vector<int> costly{1, 1, 1};
  const std::vector<int> cheap{2, 2, 2};
  SearchWorker worker(*core, 3);
  worker.guide({.decoded = &costly});
  // The guide counts once the cycle has ended.
  worker.guide({.best = &cheap, .best_cost = -100, .decoded = &costly});
  CHECK(worker.best_cost() > -100);
  worker.run(kCycleWork, Budget());
  worker.guide({.best = &cheap, .best_cost = -100, .decoded = &costly});
  CHECK(worker.best_cost() == -100);
  CHECK(worker.best() == cheap);
}

TEST_CASE("a worker that does not recombine records no recombination") {
  Rng rng(8);
  std::uint64_t runs = 0;
  for (const bool recombines : {true, false}) {
    for (int i = 0; i < 20; ++i) {
      const PlainCore core(random_problem(rng, {.most_assignments = 400}));
      if ((*core).size() == 0) continue;
      const std::vector<int> start = leanest(*core);
      SearchWorker worker(*core, 5, recombines);
      worker.guide({.decoded = &start});
      worker.run(kCycleWork, Budget());
      // The end of the first cycle combines its best and its last assignment.
      worker.guide({.decoded = &start});
      PassTable passes;
      worker.record_recombination(passes, 1);
      const Procedure row = passes.procedures({})[index(Pass::kRecombination)];
      if (recombines) {
        runs += row.runs;
      } else {
        CHECK(row.runs == 0);
      }
    }
  }
  CHECK(runs > 0);
}

}  // namespace
}  // namespace shardprop::solver
