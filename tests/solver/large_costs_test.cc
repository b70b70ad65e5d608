// Bounds at costs near the end of what doubles count exactly, with and without
// memory rows.
#include "solver/least_by_choice.h"
#include "solver/random_problem.h"
#include "support/property.h"

#include <shardprop/solver/solve.h>
#include "solver/bound/dual_bound.h"
#include "solver/presolve/core.h"
#include "solver/presolve/reduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::solver {
namespace {

// Costs from 2^45 to 2^52 - 1.
testing::RandomShape large_shape(int i) {
  testing::RandomShape shape;
  shape.most_variables = 7;
  shape.most_assignments = 400;
  shape.most_cost = (std::int64_t{1} << (45 + i % 8)) - 1;
  shape.bytes_unit = i % 3 == 0 ? 1 : std::int64_t{1} << (10 * (i % 5));
  return shape;
}

TEST_CASE(
    "large costs: the optimum, or a bound below it, as brute force has it") {
  Rng rng(shardprop::testing::property_seed() + 45);
  const int cases = shardprop::testing::counted(300, 16'000);
  int proven = 0;
  int feasible = 0;
  for (int i = 0; i < cases; ++i) {
    CAPTURE(i);
    const Problem problem = testing::random_problem(rng, large_shape(i));
    SolveOptions options;
    options.time_limit_seconds = 1e12;
    options.work_limit = 20'000'000;
    options.threads = 1;
    if (i % 2 == 0) options.passes.disable(Pass::kElimination);
    if (i % 4 == 0) options.passes.disable(Pass::kLowDegree);
    const Solution solution = solve(problem, options);
    REQUIRE(!solution.failure);
    const std::optional<Int128> truth = testing::brute_force(problem);
    if (!truth) {
      CHECK(solution.status == Status::kInfeasible);
      continue;
    }
    ++feasible;
    CHECK(solution.status != Status::kInfeasible);
    if (solution.lower_bound) CHECK((*solution.lower_bound <= *truth));
    if (solution.cost) CHECK((*solution.cost >= *truth));
    if (solution.status == Status::kOptimal) {
      ++proven;
      CHECK((*solution.cost == *truth));
    }
  }
  MESSAGE(proven << " of " << feasible << " proven");
  CHECK(10 * proven > 9 * feasible);
}

TEST_CASE("dual bounds stay below the optimum at any ceiling and any prices") {
  Rng rng(shardprop::testing::property_seed() + 46);
  int inexact = 0;
  int compared = 0;
  for (int i = 0; i < shardprop::testing::scaled(1000); ++i) {
    CAPTURE(i);
    const Problem problem = testing::random_problem(rng, large_shape(i));
    const std::optional<Int128> truth = testing::brute_force(problem);
    if (!truth) continue;
    Network network(problem);
    PassTable clock;
    PassSet passes;
    passes.disable(Pass::kLowDegree);
    passes.disable(Pass::kDominance);
    reduce(network, passes, clock, Budget());
    REQUIRE(!network.infeasible);
    if (network.num_alive() == 0) continue;
    const Core core(network, std::ldexp(1.0, 48 + i % 5));
    const auto least = testing::least_by_choice(problem, network, core);
    DualBound dual(core);
    inexact += dual.is_exact() ? 0 : 1;
    const auto target =
        static_cast<double>(*truth / network.unit - network.offset);
    const auto check = [&] {
      compared += testing::check_choice_bounds(network, core, dual, least);
    };
    for (int step = 0; step < 12; ++step) {
      dual.advance(step % 2 == 0 ? kInfinity : target);
    }
    dual.restore_best();
    check();
    // Prices of all sizes, out of the blue.
    std::vector<double> prices(index(core.rows()));
    for (double& price : prices) {
      price = rng.unit() * std::ldexp(1.0, rng.below(50));
    }
    if (prices.empty()) continue;
    dual.set_prices(prices);
    dual.sweep();
    dual.evaluate();
    dual.restore_best();
    check();
  }
  CHECK(inexact > 50);
  CHECK(compared > 2'000);
}

}  // namespace
}  // namespace shardprop::solver
