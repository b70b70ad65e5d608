// search_in_stages() under a work limit does not depend on the clock.
#include "plan/search/staged_search.h"
#include "plan/search/compare_recipes.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/mesh/topology.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

// A machine so slow that a minute passes between two readings of its clock.
Budget::Clock::time_point slow_now;
Budget::Clock::time_point read_slow_clock() {
  slow_now += std::chrono::minutes(1);
  return slow_now;
}

Budget slow_budget(const BudgetLimits& limits) {
  return Budget(limits, {}, std::nullopt, &read_slow_clock);
}

TEST_CASE("a slow machine makes the same plan under a work limit") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
  const DeviceMesh mesh = value_of(DeviceMesh::parse("dp=2,tp=2"));
  PlanOptions options;
  options.work_limit = 0;
  options.compare = true;
  std::vector<std::int64_t> costs;
  std::vector<std::vector<PlanRecipe>> recipes;
  for (const Budget& budget :
       {Budget({kNoTimeLimit, 0}), slow_budget({kNoTimeLimit, 0})}) {
    const StagedResult found = value_of(search_in_stages(
        graph, mesh, default_topology(), library, options, budget));
    REQUIRE(found.solution.assignment);
    CHECK(found.ran_out == RanOut::kWork);
    CHECK(found.space == PlanSpace{0});
    costs.push_back(found.solution.evaluation.objective);
    std::vector<PlanSolution::LeftOut> left_out;
    recipes.push_back(
        value_of(compare_recipes(graph, mesh, default_topology(), library,
                                 options, budget, found, left_out)));
    CHECK(left_out.empty());
  }
  CHECK(costs[0] == costs[1]);
  REQUIRE(recipes[0].size() == recipes[1].size());
  CHECK(!recipes[0].empty());
  for (std::size_t r = 0; r < recipes[0].size(); ++r) {
    CAPTURE(recipes[0][r].name);
    CHECK(recipes[0][r].objective_nanoseconds.has_value());
    CHECK(recipes[0][r].objective_nanoseconds ==
          recipes[1][r].objective_nanoseconds);
  }
}

}  // namespace
}  // namespace shardprop
