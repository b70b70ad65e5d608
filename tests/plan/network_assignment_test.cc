// Assignments of a network belong to the networks with its variables.
#include "plan/network/plan_network.h"
#include "plan/search/network_search.h"
#include "plan/search/overlap_search.h"
#include "plan/slow_links.h"
#include "plan/small_graphs.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/base/error.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/solver/solve.h>

#include <cstdint>
#include <string>
#include <utility>

namespace shardprop {
namespace {

using testing::value_of;

PlanOptions training_options() {
  PlanOptions options;
  options.overlap = 1;
  options.optimizer = Optimizer::kAdamW;
  options.work_limit = 2'000'000'000;
  options.time_limit_seconds = 1e9;
  return options;
}

PlanProblem layers_problem(const Graph& graph, const PlanOptions& options) {
  return value_of(PlanProblem::create(
      graph, value_of(DeviceMesh::parse("dp=8")), test::slow_links(8),
      testing::standard_library(), options));
}

NetworkAssignment solved(const PlanNetwork& network) {
  solver::SolveOptions how;
  how.work_limit = 10'000'000;
  how.threads = 1;
  return network.assignment(solver::solve(network.network(), how).assignment);
}

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

TEST_CASE("a network decodes its own assignments only") {
  const Graph graph = test::residual_training(testing::standard_library(), 2,
                                              "4096", "1024", "4096");
  const PlanProblem problem = layers_problem(graph, training_options());
  const PlanProblem other_problem = layers_problem(graph, training_options());
  const PlanNetwork free = value_of(PlanNetwork::create(problem, {}));
  const PlanNetwork limited =
      value_of(PlanNetwork::create(problem, {.memory_limit = kPlenty}));
  const NetworkAssignment of_free = solved(free);
  const NetworkAssignment of_limited = solved(limited);
  CHECK(of_free.size() < of_limited.size());
  CHECK_NOTHROW(free.decode(of_free));
  CHECK_THROWS_AS(limited.decode(of_free), InternalError);
  CHECK_THROWS_AS(free.decode(of_limited), InternalError);
  CHECK_THROWS_AS(free.decode({}), InternalError);
  CHECK_THROWS_AS(free.assignment({0, 1}), InternalError);

  // Prices do not change the variables; a reserve adds one.
  NetworkOptions priced{.memory_limit = kPlenty};
  priced.overlap_multipliers.assign(problem.window_loads().size(),
                                    kOverlapMultiplierUnit);
  const PlanNetwork of_prices = value_of(PlanNetwork::create(problem, priced));
  CHECK_NOTHROW(of_prices.decode(of_limited));
  priced.reserved.assign(graph.nodes().size() + 1, 1);
  const PlanNetwork of_reserve = value_of(PlanNetwork::create(problem, priced));
  CHECK(of_reserve.network().num_variables() == of_limited.size() + 1);
  CHECK_THROWS_AS(of_reserve.decode(of_limited), InternalError);

  const PlanNetwork elsewhere =
      value_of(PlanNetwork::create(other_problem, {}));
  CHECK_THROWS_AS(elsewhere.decode(of_free), InternalError);
}

TEST_CASE("choices that are left belong to one network") {
  const Graph graph = test::residual_training(testing::standard_library(), 2,
                                              "4096", "1024", "4096");
  const PlanProblem problem = layers_problem(graph, training_options());
  const NetworkAssignment of_free =
      solved(value_of(PlanNetwork::create(problem, {})));
  const NetworkAssignment of_limited =
      solved(value_of(PlanNetwork::create(problem, {.memory_limit = kPlenty})));
  NetworkOptions options;
  for (std::size_t v = 0; v < of_free.size(); ++v) {
    options.left.hold(of_free, v);
  }
  CHECK_THROWS_AS(options.left.hold(of_limited, 0), InternalError);
  CHECK_THROWS_AS(options.left.hold(of_free, of_free.size()), InternalError);
  const PlanNetwork cached = value_of(PlanNetwork::create(problem, options));
  const NetworkAssignment same = solved(cached);
  for (std::size_t v = 0; v < of_free.size(); ++v) {
    CHECK(same[v] == of_free[v]);
  }
  options.memory_limit = kPlenty;
  CHECK_THROWS_AS(PlanNetwork::create(problem, options), InternalError);

  ChoicesLeft left;
  std::size_t variable = 0;
  while (of_free.num_choices(variable) == 1) ++variable;
  CHECK(left.forbid(of_free, variable));
  REQUIRE(left.of(identity_of(problem, {}), variable) != nullptr);
  CHECK(left.of(identity_of(problem, {}), variable)->size() ==
        of_free.num_choices(variable) - 1);
  CHECK(left.of(identity_of(problem, {}), variable + 1) == nullptr);
}

// The last network solved before the search prices time may differ from the
// network in which it prices it: small_solution() and looks with a reserve
// lead to plans that fit, too.
TEST_CASE("overlapped time is priced after a network with other variables") {
  const Graph graph = test::residual_training(testing::standard_library(), 2,
                                              "4096", "1024", "4096");
  PlanOptions options = training_options();
  options.memory_limit = kPlenty;
  const PlanProblem problem = layers_problem(graph, options);
  const NetworkOptions limited{.memory_limit = kPlenty};
  NetworkOptions reserve = limited;
  reserve.reserved.assign(graph.nodes().size() + 1, 1);
  for (const NetworkOptions& first : {NetworkOptions{}, reserve}) {
    NetworkSearch search(problem,
                         Budget({.seconds = 1e9, .work = 200'000'000}));
    SolvedNetwork solved = search.solve(first);
    REQUIRE(solved);
    REQUIRE(solved.evaluation.exposed() > 0);
    OverlapSearch overlapped(search, limited, true);
    const auto prices = overlapped.run(std::move(solved));
    CHECK(prices.size() == problem.window_loads().size());
    const PlanSolution& best = search.incumbent().solution();
    CHECK(best.lower_bound <= best.evaluation.objective);
    const SolvedNetwork last = search.solve(limited);
    REQUIRE(last);
    CHECK(last.assignment.is_of(identity_of(problem, limited)));
  }
}

}  // namespace
}  // namespace shardprop
