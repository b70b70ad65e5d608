#include "solver/least_by_choice.h"
#include "solver/random_problem.h"
#include "support/property.h"

#include <shardprop/solver/solve.h>
#include "solver/bound/dual_bound.h"
#include "solver/presolve/core.h"
#include "solver/presolve/reduce.h"

#include <doctest/doctest.h>

#include <cmath>

namespace shardprop::solver {
namespace {

using testing::brute_force;
using testing::random_problem;
using testing::RandomShape;

SolveOptions quiet_options(std::uint64_t seed, int threads) {
  SolveOptions options;
  options.time_limit_seconds = 1e12;
  options.work_limit = 2'000'000'000;
  options.seed = seed;
  options.threads = threads;
  return options;
}

// Checks an answer, with any passes, against all assignments.
void check_against_all_assignments(const Problem& problem,
                                   const Solution& solution) {
  const std::optional<Int128> truth = brute_force(problem);
  if (!truth.has_value()) {
    CHECK(solution.status == Status::kInfeasible);
    CHECK(solution.conflict.has_value());
    return;
  }
  REQUIRE(solution.status == Status::kOptimal);
  CHECK(to_string(*solution.cost) == to_string(*truth));
  CHECK(to_string(*solution.lower_bound) == to_string(*truth));
  CHECK(evaluate(problem, solution.assignment)->feasible());
  CHECK(to_string(evaluate(problem, solution.assignment)->cost) ==
        to_string(*truth));
}

TEST_CASE("the optimum does not depend on initial messages or assignments") {
  Rng rng(shardprop::testing::property_seed());
  const int cases = shardprop::testing::counted(350, 14'000);
  Messages messages;
  std::vector<Assignment> known;
  for (int i = 0; i < cases; ++i) {
    RandomShape shape;
    shape.most_cost = i % 2 == 0 ? 3 : 1'000'000'000;
    shape.most_assignments = 1500;
    const Problem problem = random_problem(rng, shape);
    CAPTURE(i);
    SolveOptions options = quiet_options(static_cast<std::uint64_t>(i), 1);
    options.passes.disable(Pass::kElimination);
    if (i % 3 != 0) options.passes.disable(Pass::kLowDegree);
    options.messages = &messages;
    options.known = known;
    const Solution solution = solve(problem, options);
    check_against_all_assignments(problem, solution);
    if (known.size() == 8) known.clear();
    known.push_back(solution.assignment);
  }
  CHECK(!messages.told.empty());
}

TEST_CASE(
    "random problems: the optimum, and infeasibility, as brute force has it") {
  Rng rng(shardprop::testing::property_seed());
  const int cases = shardprop::testing::counted(2'000, 90'000);
  int infeasible = 0;
  for (int i = 0; i < cases; ++i) {
    RandomShape shape;
    shape.most_cost = i % 3 == 0 ? 3 : i % 3 == 1 ? 100 : 1'000'000'000;
    shape.most_assignments = i % 10 == 0 ? 20000 : 1500;
    const Problem problem = random_problem(rng, shape);
    CAPTURE(i);
    const Solution solution =
        solve(problem, quiet_options(static_cast<std::uint64_t>(i), 1));
    check_against_all_assignments(problem, solution);
    infeasible += solution.status == Status::kInfeasible ? 1 : 0;
  }
  // Both kinds must be there for the test to mean anything.
  CHECK(infeasible > cases / 30);
  CHECK(infeasible < cases / 2);
}

TEST_CASE("random problems with any one pass switched off") {
  Rng rng(shardprop::testing::property_seed() + 1);
  const int cases = shardprop::testing::counted(60, 150);
  for (std::size_t off = 0; off < kNumPasses; ++off) {
    const Pass pass = static_cast<Pass>(off);
    // Without branching nothing is proven in general.
    if (pass == Pass::kBranchAndBound) continue;
    for (int i = 0; i < cases; ++i) {
      const Problem problem = random_problem(rng, {.most_assignments = 600});
      SolveOptions options =
          quiet_options(static_cast<std::uint64_t>(i), 1 + i % 2);
      options.passes.disable(pass);
      CAPTURE(pass_name(pass));
      CAPTURE(i);
      check_against_all_assignments(problem, solve(problem, options));
    }
  }
}

TEST_CASE("bounds never exceed the optimum, whatever the work") {
  Rng rng(shardprop::testing::property_seed() + 2);
  for (int i = 0; i < shardprop::testing::scaled(600); ++i) {
    const Problem problem = random_problem(rng, {.most_assignments = 1000});
    SolveOptions options = quiet_options(static_cast<std::uint64_t>(i), 1);
    options.work_limit = 1;
    options.passes.disable(Pass::kBranchAndBound);
    const Solution solution = solve(problem, options);
    const std::optional<Int128> truth = brute_force(problem);
    CAPTURE(i);
    if (!truth.has_value()) continue;
    REQUIRE(solution.status != Status::kInfeasible);
    if (solution.lower_bound.has_value())
      CHECK(*solution.lower_bound <= *truth);
    if (solution.cost.has_value()) CHECK(*solution.cost >= *truth);
  }
}

TEST_CASE("the dual and its bounds on single choices hold at every step") {
  Rng rng(123);
  int compared = 0;
  for (int i = 0; i < 400; ++i) {
    const Problem problem = random_problem(rng, {.most_assignments = 400});
    const std::optional<Int128> truth = brute_force(problem);
    if (!truth.has_value()) continue;
    Network network(problem);
    PassTable clock;
    PassSet passes;
    // Little is reduced, so that the dual has something to do.
    passes.disable(Pass::kLowDegree);
    passes.disable(Pass::kDominance);
    reduce(network, passes, clock, Budget());
    REQUIRE(!network.infeasible);
    if (network.num_alive() == 0) continue;
    const Core core(network, 1e12);
    DualBound dual(core);
    for (int step = 0; step < 12; ++step) {
      dual.advance(step % 2 == 0
                       ? kInfinity
                       : static_cast<double>(*truth - network.offset));
      CHECK(network.offset +
                static_cast<Int128>(std::ceil(dual.best_bound())) <=
            *truth);
    }
    dual.restore_best();
    compared += testing::check_choice_bounds(
        network, core, dual, testing::least_by_choice(problem, network, core));
  }
  CHECK(compared > 500);
}

TEST_CASE("same seed, threads and work limit: the same answer to the bit") {
  Rng rng(4);
  for (int i = 0; i < 20; ++i) {
    const Problem problem =
        random_problem(rng, {.most_variables = 60,
                             .most_choices = 6,
                             .most_cost = 1000,
                             .most_assignments = 2000000000});
    for (const int threads : {1, 2, 3}) {
      SolveOptions options = quiet_options(5, threads);
      options.work_limit = 30'000'000;
      const Solution first = solve(problem, options);
      const Solution second = solve(problem, options);
      CHECK(first.status == second.status);
      CHECK(first.assignment == second.assignment);
      CHECK((first.lower_bound == second.lower_bound));
      CHECK(first.work == second.work);
    }
  }
}

}  // namespace
}  // namespace shardprop::solver
