// The bound of messages rises until it stalls, and stays below every cost.
#include "solver/random_problem.h"

#include "solver/bound/dual_bound.h"
#include "solver/model/network.h"
#include "solver/presolve/core.h"

#include <shardprop/solver/solve.h>

#include <doctest/doctest.h>

#include <cstdint>

namespace shardprop::solver {
namespace {

TEST_CASE("the dual bound of a chain of rings stalls near the best cost") {
  for (const std::uint64_t seed : {2, 3}) {
    CAPTURE(seed);
    const Problem problem = testing::chain_of_rings(seed);
    Network network(problem);
    const Core core(network, 1e7);
    DualBound dual(core);
    double before = -kInfinity;
    int steps = 0;
    while (!dual.stalled()) {
      REQUIRE(++steps < 10'000);
      dual.advance(kInfinity);
      CHECK(dual.best_bound() >= before);
      before = dual.best_bound();
    }
    SolveOptions options;
    options.time_limit_seconds = 1e12;
    options.work_limit = 100'000'000;
    const Solution solution = solve(problem, options);
    REQUIRE(solution.cost.has_value());
    const auto cost =
        static_cast<double>(*solution.cost / network.unit - core.offset);
    CAPTURE(cost);
    CHECK(before <= cost);
    CHECK(before > 0.8 * cost);
  }
}

}  // namespace
}  // namespace shardprop::solver
