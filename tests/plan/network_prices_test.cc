// A network that gets other prices equals the network that is built with them.
#include "plan/network/plan_network.h"
#include "plan/slow_links.h"
#include "plan/small_graphs.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/base/error.h>
#include <shardprop/plan/plan_options.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

constexpr std::int64_t kAmpleBytes = std::int64_t{1} << 40;

PlanProblem accumulated_training(const Graph& graph) {
  PlanOptions options;
  options.overlap = 1;
  options.optimizer = Optimizer::kAdamW;
  options.accumulate = 4;
  return value_of(PlanProblem::create(
      graph, value_of(DeviceMesh::parse("dp=4,tp=2")), test::slow_links(8),
      testing::standard_library(), options));
}

Graph two_layers() {
  return test::residual_training(testing::standard_library(), 2, "4096", "1024",
                                 "4096");
}

template <class T>
std::vector<T> copied(std::span<const T> values) {
  return {values.begin(), values.end()};
}

void check_equal(const solver::Problem& a, const solver::Problem& b) {
  REQUIRE(a.num_variables() == b.num_variables());
  REQUIRE(a.num_edges() == b.num_edges());
  CHECK(a.limit() == b.limit());
  for (std::size_t v = 0; v < a.num_variables(); ++v) {
    const solver::VariableId id(v);
    CHECK(copied(a.costs(id)) == copied(b.costs(id)));
    REQUIRE(a.num_usages(id) == b.num_usages(id));
    for (std::size_t u = 0; u < a.num_usages(id); ++u) {
      CHECK(a.usage(id, u).when == b.usage(id, u).when);
      CHECK(copied(a.usage(id, u).bytes) == copied(b.usage(id, u).bytes));
    }
  }
  for (std::size_t e = 0; e < a.num_edges(); ++e) {
    const solver::Edge& of_a = a.edges()[e];
    const solver::Edge& of_b = b.edges()[e];
    CHECK(of_a.a == of_b.a);
    CHECK(of_a.b == of_b.b);
    CHECK(copied(a.table(of_a.table).costs) ==
          copied(b.table(of_b.table).costs));
  }
}

// Returns options of networks with the same variables, which differ in all
// other respects.
std::vector<NetworkOptions> several(const PlanProblem& problem,
                                    const NetworkOptions& first) {
  const PlanNetwork network = value_of(PlanNetwork::create(problem, first));
  solver::SolveOptions how;
  how.work_limit = 10'000'000;
  const NetworkAssignment solved =
      network.assignment(solver::solve(network.network(), how).assignment);
  NetworkOptions priced = first;
  for (std::size_t w = 0; w < problem.window_loads().size(); ++w) {
    priced.overlap_multipliers.push_back(w % 2 == 0 ? kOverlapMultiplierUnit
                                                    : 300);
  }
  NetworkOptions restricted = priced;
  for (std::size_t v = 0; v < solved.size(); v += 3) {
    restricted.left.hold(solved, v);
  }
  NetworkOptions tight = first;
  if (tight.memory_limit) *tight.memory_limit /= 2;
  for (std::int64_t& bytes : tight.reserved) bytes *= 3;
  return {first, priced, restricted, tight, priced, first};
}

TEST_CASE("a network with other prices is the one that is built with them") {
  const Graph graph = two_layers();
  const PlanProblem problem = accumulated_training(graph);
  NetworkOptions reserve{.memory_limit = kAmpleBytes};
  reserve.reserved.assign(graph.nodes().size() + 1, 0);
  reserve.reserved[2] = 4096;
  NetworkOptions bounded{.memory_limit = kAmpleBytes};
  bounded.most_uncounted = 1 << 20;
  for (const NetworkOptions& first :
       {NetworkOptions{}, NetworkOptions{.memory_limit = kAmpleBytes}, reserve,
        bounded}) {
    PlanNetwork network(problem, first);
    for (const NetworkOptions& options : several(problem, first)) {
      REQUIRE(network.price(options));
      check_equal(network.network(),
                  value_of(PlanNetwork::create(problem, options)).network());
    }
  }
}

TEST_CASE("a network refuses the prices of another one") {
  const Graph graph = two_layers();
  const PlanProblem problem = accumulated_training(graph);
  PlanNetwork network = value_of(PlanNetwork::create(problem, {}));
  const NetworkOptions limited{.memory_limit = kAmpleBytes};
  CHECK_FALSE(network.can_price(limited));
  CHECK_THROWS_AS(network.price(limited), InternalError);
  NetworkOptions bounded;
  bounded.most_uncounted = 1 << 20;
  CHECK_FALSE(network.can_price(bounded));

  // Options that cannot be stated leave the network as it was.
  PlanNetwork with_memory = value_of(PlanNetwork::create(problem, limited));
  const auto refused = with_memory.price({.memory_limit = -1});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kProblemValue);
  check_equal(with_memory.network(),
              value_of(PlanNetwork::create(problem, limited)).network());
}

TEST_CASE("a solve returns its plan by value") {
  const Graph graph = two_layers();
  const PlanProblem problem = accumulated_training(graph);
  PlanNetwork network(problem, {});
  const Budget budget({.seconds = 1e9, .work = 2'000'000'000});
  const SolvedNetwork free = network.solve({}, budget);
  REQUIRE(free);
  CHECK(free.evaluation.objective == evaluate(problem, free.plan).objective);
  CHECK(free.bound <= free.evaluation.objective - free.evaluation.exposed());

  // The bound at any multipliers is a bound for all plans.
  NetworkOptions exposed;
  exposed.overlap_multipliers.assign(problem.window_loads().size(),
                                     kOverlapMultiplierUnit);
  const SolvedNetwork priced = network.solve(exposed, budget);
  REQUIRE(priced);
  CHECK(priced.bound <= free.evaluation.objective);

  NetworkOptions held;
  for (std::size_t v = 0; v < free.assignment.size(); ++v) {
    held.left.hold(free.assignment, v);
  }
  const SolvedNetwork same = network.solve(held, budget);
  REQUIRE(same);
  CHECK(same.assignment == free.assignment);

  // A variable without any choice leaves no solution.
  NetworkOptions none;
  none.left.hold(free.assignment, 0);
  CHECK_FALSE(none.left.forbid(free.assignment, 0));
  const SolvedNetwork infeasible = network.solve(none, budget);
  CHECK_FALSE(infeasible);
  CHECK(infeasible.is_infeasible());
}

}  // namespace
}  // namespace shardprop
