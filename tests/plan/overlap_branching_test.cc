// Tests how a search ends whose last procedure is the branching on overlap.
// possible_choices_test.cc compares its bounds with enumeration.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>

namespace shardprop {
namespace {

using testing::value_of;

// Half of the transfers of this topology fit behind the compute.
Topology slow_memory() {
  Topology topology = default_topology();
  topology.launch_us.value = 0;
  topology.ramp_us.value = 0;
  topology.memory_gbps.value = 20;
  return topology;
}

TEST_CASE("a limit that ends the branching on overlap is the reason") {
  const Graph graph =
      value_of(load_graph("examples/graphs/tiny/llama3_train.json.gz",
                          testing::standard_library()));
  const auto planned = [&](std::uint64_t work_limit) {
    PlanOptions options;
    options.gap = 0;
    options.overlap = 1;
    options.work_limit = work_limit;
    options.time_limit_seconds = 1e9;
    return value_of(make_plan(graph, value_of(DeviceMesh::parse("8")),
                              slow_memory(), testing::standard_library(),
                              options));
  };
  const Plan whole = planned(200'000'000);
  REQUIRE(whole.status == PlanStatus::kOptimal);
  CHECK(whole.ran_out == RanOut::kNothing);
  const auto branching = std::find_if(
      whole.procedures.begin(), whole.procedures.end(),
      [](const Procedure& one) { return one.name == "overlap-branching"; });
  REQUIRE(branching != whole.procedures.end());
  REQUIRE(branching->work > whole.search.work / 2);

  const Plan part = planned(whole.search.work * 9 / 10);
  CHECK(part.status == PlanStatus::kFeasible);
  CHECK(part.ran_out == RanOut::kWork);
  CHECK(part.lower_bound_nanoseconds <= *whole.objective_nanoseconds);
  CHECK(part.search.work < whole.search.work);
}

}  // namespace
}  // namespace shardprop
