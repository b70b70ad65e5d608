// Probing finds optima and proves bounds of networks that are not reduced at
// all before.
#include "solver/random_problem.h"

#include "solver/bound/dual_ascent.h"
#include "solver/bound/search_state.h"
#include "solver/search/probing.h"

#include <doctest/doctest.h>

#include <memory>
#include <numeric>
#include <vector>

namespace shardprop::solver {
namespace {

constexpr int kVariables = 6;
constexpr int kChoices = 4;

TEST_CASE("probing: the bound stays below the optimum, what is found above") {
  Rng rng(7);
  int optima = 0;
  int risen = 0;
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const Problem problem = testing::complete_graph(rng, kVariables, kChoices);
    const Int128 least = *testing::brute_force(problem);
    SolveOptions options;
    SearchState state(problem, options);
    state.core = std::make_unique<Core>(state.network, 1e6);
    state.best.offer(std::vector<int>(kVariables, 0));
    state.best.raise_bound(0);
    // As much as a search would have worked by then.
    state.budget.charge(1'000'000);
    DualAscent dual(state);
    REQUIRE(dual.is_due(0));
    dual.start();
    Probing probing(state);
    bool has_risen = false;
    for (int round = 0; round < 10 && !state.best.proven(); ++round) {
      dual.run(5'000);
      dual.gather();
      if (!probing.is_due()) continue;
      const Int128 before = *state.best.bound();
      probing.run();
      has_risen = has_risen || *state.best.bound() > before;
      CHECK(*state.best.bound() <= least);
      CHECK(state.best.cost() >= least);
    }
    optima += state.best.cost() == least ? 1 : 0;
    risen += has_risen ? 1 : 0;
  }
  MESSAGE(optima << " optima of 200, " << risen << " bounds risen");
  CHECK(optima > 100);
  CHECK(risen > 50);
}

}  // namespace
}  // namespace shardprop::solver
