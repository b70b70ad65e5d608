// LateElimination and Branching end a search with the optimum of brute force.
#include "solver/random_problem.h"
#include "support/property.h"

#include "solver/bound/pruned_root.h"
#include "solver/bound/search_state.h"
#include "solver/eliminate/late_elimination.h"
#include "solver/presolve/reduce.h"
#include "solver/search/branching.h"
#include "solver/tuning.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace shardprop::solver {
namespace {

// A search that has a reduced core and a bound, but no assignment.
struct Begun {
  explicit Begun(const Problem& the_problem, int steps)
      : problem(the_problem), state(problem, options) {
    // Few passes, so that most networks keep some variables.
    PassSet passes;
    passes.disable(Pass::kLowDegree);
    passes.disable(Pass::kDominance);
    reduce(state.network, passes, state.passes, state.budget);
    if (state.network.infeasible || state.network.num_alive() == 0) return;
    state.core = std::make_unique<Core>(state.network, 1e9);
    state.dual = std::make_unique<DualBound>(*state.core);
    for (int i = 0; i < steps; ++i) state.dual->advance(kInfinity);
  }
  bool has_core() const { return state.core != nullptr; }

  const Problem& problem;
  SolveOptions options;
  SearchState state;
};

void check_end(const Begun& begun) {
  const std::optional<Int128> truth = testing::brute_force(begun.problem);
  const Incumbent& best = begun.state.best;
  CHECK(best.proven());
  CHECK(best.infeasible() == !truth.has_value());
  if (!truth) return;
  REQUIRE(best.known());
  CHECK((best.cost() == *truth));
  CHECK((*best.bound() == *truth));
  CHECK(evaluate(begun.problem, best.assignment())->feasible());
}

// Offers an assignment by brute force that is feasible, but seldom the best.
void offer_some(Begun& begun, Rng& rng) {
  Assignment x(begun.problem.num_variables(), 0);
  for (int tries = 0; tries < 50; ++tries) {
    for (std::size_t v = 0; v < x.size(); ++v) {
      x[v] = static_cast<std::uint32_t>(rng.below(
          static_cast<int>(begun.problem.num_choices(VariableId(v)))));
    }
    if (!evaluate(begun.problem, x)->feasible()) continue;
    begun.state.best.offer_known(x);
    return;
  }
}

TEST_CASE("eliminate_rest() finds the optimum of a network without bytes") {
  Rng rng(shardprop::testing::property_seed() + 71);
  int ended = 0;
  int refused = 0;
  for (int i = 0; i < shardprop::testing::scaled(300); ++i) {
    CAPTURE(i);
    const Problem problem =
        testing::random_problem(rng, {.most_variables = 6, .most_choices = 3});
    Begun begun(problem, i % 4);
    if (!begun.has_core()) continue;
    if (i % 2 == 0) offer_some(begun, rng);
    const Int128 below = begun.state.best.cost_in_units();
    const PrunedRoot root(begun.state, begun.state.core_target());
    if (root.network.infeasible) continue;
    if (!eliminate_rest(begun.state, root, tuning::kMostEliminationEntries,
                        below)) {
      // Only memory rows are beyond elimination here.
      CHECK(begun.state.core->rows() > 0);
      ++refused;
      continue;
    }
    check_end(begun);
    ++ended;
  }
  CHECK(ended > 20);
  CHECK(refused > 5);
}

TEST_CASE("eliminate_rest() refuses tables that are too large") {
  Rng rng(5);
  const Problem problem = testing::complete_graph(rng, 6, 3);
  Begun begun(problem, 2);
  const PrunedRoot root(begun.state, begun.state.core_target());
  CHECK(!eliminate_rest(begun.state, root, 10, Incumbent::kNoCost));
  CHECK(!begun.state.best.known());
  CHECK(eliminate_rest(begun.state, root, tuning::kMostEliminationEntries,
                       Incumbent::kNoCost));
  check_end(begun);
}

TEST_CASE("late elimination waits for a best assignment and for work") {
  Rng rng(6);
  const Problem problem = testing::complete_graph(rng, 6, 3);
  Begun begun(problem, 2);
  LateElimination late(begun.state);
  late.allow();
  CHECK(!late.is_due());
  begun.state.best.offer_known(Assignment(problem.num_variables(), 0));
  CHECK(!late.is_due());
  begun.state.budget.charge(1'000'000'000);
  CHECK(late.is_due());
  late.run();
  check_end(begun);
}

TEST_CASE("late elimination that is not allowed is never due") {
  Rng rng(7);
  const Problem problem = testing::complete_graph(rng, 6, 3);
  Begun begun(problem, 2);
  LateElimination late(begun.state);
  begun.state.best.offer_known(Assignment(problem.num_variables(), 0));
  begun.state.budget.charge(1'000'000'000);
  CHECK(!late.is_due());
}

TEST_CASE("branching ends with the optimum, with and without memory rows") {
  Rng rng(shardprop::testing::property_seed() + 72);
  int ended = 0;
  int with_rows = 0;
  for (int i = 0; i < shardprop::testing::scaled(1200); ++i) {
    CAPTURE(i);
    const Problem problem =
        testing::random_problem(rng, {.most_variables = 6, .most_choices = 3});
    Begun begun(problem, i % 4);
    if (!begun.has_core()) continue;
    if (i % 2 == 0) offer_some(begun, rng);
    Branching branching(begun.state);
    CHECK(!branching.is_open());
    CHECK(branching.is_due(2));
    branching.start();
    for (int round = 0; branching.is_open(); ++round) {
      REQUIRE(round < 100);
      branching.run(1'000'000);
      branching.gather();
    }
    check_end(begun);
    ++ended;
    with_rows += begun.state.core->rows() > 0 ? 1 : 0;
  }
  CHECK(ended > 40);
  CHECK(with_rows > 4);
}

TEST_CASE("branching that was switched off is never due") {
  Rng rng(8);
  const Problem problem = testing::complete_graph(rng, 4, 3);
  Begun begun(problem, 2);
  begun.options.passes.disable(Pass::kBranchAndBound);
  CHECK(!Branching(begun.state).is_due(100));
}

}  // namespace
}  // namespace shardprop::solver
