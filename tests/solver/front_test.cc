// Elimination along one front finds optima, and its bounds stay below them
// where its table had to be cut.
#include "solver/random_problem.h"

#include "solver/bound/dual_ascent.h"
#include "solver/bound/search_state.h"
#include "solver/eliminate/front.h"
#include "solver/eliminate/front_elimination.h"
#include "solver/eliminate/front_order.h"
#include "solver/presolve/reduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

namespace shardprop::solver {
namespace {

TEST_CASE("front order: each variable once, as narrow as a ladder is") {
  // The graph is two rails with rungs between them: three variables are live at
  // a time, and a new one joins.
  constexpr int kRungs = 40;
  std::vector<std::vector<int>> neighbours(2 * kRungs);
  const auto join = [&](int a, int b) {
    neighbours[index(a)].push_back(b);
    neighbours[index(b)].push_back(a);
  };
  // Numbered so that no two neighbours are near each other.
  const auto number = [](int rung, int rail) {
    return (rung * 2 + rail) * 37 % (2 * kRungs);
  };
  for (int r = 0; r < kRungs; ++r) {
    join(number(r, 0), number(r, 1));
    if (r + 1 == kRungs) continue;
    join(number(r, 0), number(r + 1, 0));
    join(number(r, 1), number(r + 1, 1));
  }
  const std::vector<double> weight(2 * kRungs, std::log(4));
  const std::vector<int> order = front_order(neighbours, weight, 20);
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int> all(2 * kRungs);
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
  std::vector<int> met = order_met(neighbours, order);
  std::sort(met.begin(), met.end());
  CHECK(met == all);
  std::vector<char> known(2 * kRungs, 0);
  std::size_t front = 0;
  std::size_t widest = 0;
  for (const int v : order) {
    const auto meet = [&](int u) {
      if (known[index(u)] != 0) return;
      known[index(u)] = 1;
      ++front;
    };
    meet(v);
    for (const int u : neighbours[index(v)]) meet(u);
    widest = std::max(widest, front);
    --front;
  }
  CHECK(widest == 3);
}

// Returns the state after one run that follows some messages. The network is
// reduced by the passes of `options`, and the search starts from the first
// feasible random assignment. The result is null if none is found.
std::unique_ptr<SearchState> after_a_run(const Problem& problem,
                                         const SolveOptions& options,
                                         std::size_t most_entries, Rng& rng) {
  auto state = std::make_unique<SearchState>(problem, options);
  reduce(state->network, options.passes, state->passes, state->budget);
  for (int draw = 0; draw < 100 && !state->best.known(); ++draw) {
    Assignment any;
    for (std::size_t v = 0; v < problem.num_variables(); ++v) {
      any.push_back(static_cast<std::uint32_t>(
          rng.below(static_cast<int>(problem.num_choices(VariableId(v))))));
    }
    state->best.offer_known(any);
  }
  if (!state->best.known()) return nullptr;
  state->core = std::make_unique<Core>(state->network, 1e15);
  DualAscent dual(*state);
  dual.start();
  dual.run(1 + static_cast<std::uint64_t>(rng.below(3000)));
  FrontElimination front(*state, most_entries);
  front.run();
  return state;
}

SolveOptions without_reductions(int threads) {
  SolveOptions options;
  for (std::size_t p = 0; p < kNumPasses; ++p) {
    options.passes.disable(static_cast<Pass>(p));
  }
  options.passes.enable(Pass::kDualBound);
  options.passes.enable(Pass::kExtrapolation);
  options.threads = threads;
  return options;
}

TEST_CASE("front elimination: the optimum of whatever it can hold") {
  Rng rng(11);
  int tried = 0;
  for (int i = 0; i < 3000; ++i) {
    CAPTURE(i);
    testing::RandomShape shape;
    shape.most_cost = rng.below(2) == 0 ? 20 : 1'000'000'000'000;
    const Problem problem = testing::random_problem(rng, shape);
    if (problem.limit()) continue;
    const auto least = testing::brute_force(problem);
    if (!least) continue;
    const auto state = after_a_run(problem, without_reductions(1 + i % 2),
                                   std::size_t{1} << 16, rng);
    if (!state) continue;
    ++tried;
    CHECK(state->best.cost() == *least);
    CHECK(state->best.proven());
  }
  CHECK(tried > 500);
}

TEST_CASE("front elimination: what is cut off is a bound") {
  Rng rng(13);
  int optima = 0;
  int short_of_it = 0;
  int above_messages = 0;
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    const Problem problem = testing::complete_graph(rng, 6, 4);
    const Int128 least = *testing::brute_force(problem);
    const auto state = after_a_run(problem, without_reductions(1 + i % 2),
                                   std::size_t{1} << rng.below(11), rng);
    REQUIRE(state);
    REQUIRE(state->best.bound());
    const Int128 bound = *state->best.bound();
    CHECK(bound <= least);
    CHECK(state->best.cost() >= least);
    optima += state->best.proven() ? 1 : 0;
    short_of_it += bound < least ? 1 : 0;
    const double messages = state->dual->best_bound();
    above_messages +=
        static_cast<double>(bound - state->dual_core->offset) > messages + 1
            ? 1
            : 0;
  }
  MESSAGE(optima << " optima of 400, " << short_of_it << " bounds short of it, "
                 << above_messages << " above that of messages");
  CHECK(optima > 50);
  CHECK(short_of_it > 50);
  CHECK(above_messages > 200);
}

TEST_CASE("front elimination: both directions share one limit of work") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Rng draws(seed);
    const Problem problem = testing::complete_graph(draws, 8, 4);
    SolveOptions options = without_reductions(1);
    const auto spent = [&] {
      Rng rng(seed);
      return after_a_run(problem, options, std::size_t{1} << 6, rng)
          ->spent_elsewhere;
    };
    const std::uint64_t whole = spent();
    options.work_limit = whole * 3 / 4;  // more than one direction takes
    CHECK(spent() < whole);
  }
}

TEST_CASE("front elimination: waits while messages raise the bound quickly") {
  const Problem problem = testing::chain_of_rings(2, 11);
  SolveOptions options = without_reductions(1);
  SearchState state(problem, options);
  reduce(state.network, options.passes, state.passes, state.budget);
  state.best.offer_known(
      solve(problem, {.work_limit = 200'000'000}).assignment);
  state.core = std::make_unique<Core>(state.network, 1e15);
  options.passes.enable(Pass::kElimination);
  options.passes.enable(Pass::kFrontElimination);
  DualAscent dual(state);
  dual.start();
  FrontElimination front(state);
  struct Seen {
    std::uint64_t work;
    double gap;
    bool due;
  };
  std::vector<Seen> seen;
  const auto go_on_until_due = [&] {
    do {
      dual.run(20'000);
      dual.gather();
      seen.push_back({state.dual->work(), state.dual_gap(), front.is_due()});
    } while (!seen.back().due && seen.size() < 5000);
    REQUIRE(seen.back().due);
  };
  // The gap when two thirds as much had been worked.
  const auto earlier = [&](const Seen& now) {
    double gap = kInfinity;
    for (const Seen& s : seen) {
      if (3 * s.work <= 2 * now.work) gap = s.gap;
    }
    return gap;
  };
  go_on_until_due();
  CHECK(seen.back().gap > 0.87 * earlier(seen.back()));
  const auto is_quick = [&](const Seen& s) {
    return s.gap <= 0.05 * state.core_target() && s.gap <= 0.87 * earlier(s);
  };
  CHECK(std::any_of(seen.begin(), seen.end(), is_quick));

  // A run that closes little is followed by sixteen times as much work on the
  // messages, one that closes much by half as much.
  for (int run = 0; run < 3 && !state.best.proven(); ++run) {
    CAPTURE(run);
    const std::uint64_t begun = state.spent_elsewhere;
    const std::uint64_t worked = state.dual->work();
    front.run();
    const std::uint64_t took = state.spent_elsewhere - begun;
    const bool closing = front.is_closing();
    CAPTURE(closing);
    go_on_until_due();
    const std::uint64_t since = state.dual->work() - worked;
    CHECK(since >= (closing ? took / 2 : 16 * took));
    CHECK(since <= (closing ? took : 20 * took));
  }
}

}  // namespace
}  // namespace shardprop::solver
