// Sizes, times and costs at the edge of what integers hold.
#include "plan/invariants.h"
#include "plan/search/solve_plan.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <string>

namespace shardprop {
namespace {

using testing::value_of;

// y = x w, and y y y ... `more` times.
Graph products(const OpLibrary& library, const char* meta, int more) {
  GraphBuilder b("products", library);
  const ValueId x = test::add_input(b, InputKind::kUser, "x", meta);
  const ValueId w = test::add_input(b, InputKind::kParameter, "w", meta);
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  ValueId y = test::add_op(b, "aten.mm.default", two, {x, w}, "y");
  for (int i = 0; i < more; ++i) {
    y = test::add_op(b, "aten.mm.default", two, {y, w},
                     ("y" + std::to_string(i)).c_str());
  }
  b.add_output({.value = y});
  return value_of(std::move(b).build());
}

Result<Plan> plan_of_huge(const Graph& graph, const OpLibrary& library,
                          const PlanOptions& options,
                          const Topology& topology = default_topology()) {
  return make_plan(graph, value_of(DeviceMesh::parse("2,4")), topology, library,
                   options);
}

TEST_CASE("a product beyond 2^63 ns costs much, never less than nothing") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = products(library, "f8e4m3fn[268435456,268435456]", 0);
  const Plan plan = value_of(plan_of_huge(graph, library, {}));
  REQUIRE(plan.has_plan());
  CHECK(*plan.objective_nanoseconds > std::int64_t{1} << 50);
  CHECK(plan.nodes[0].compute_nanoseconds > 0);
  // It was cut off: a cheaper plan may look the same.
  CHECK(plan.status == PlanStatus::kFeasible);
  CHECK(plan.lower_bound_nanoseconds < *plan.objective_nanoseconds);
  CHECK(summarize(plan).compute_nanoseconds ==
        plan.nodes[0].compute_nanoseconds);
}

TEST_CASE("a sum of costs beyond 64 bits stays at its edge") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = products(library, "f8e4m3fn[268435456,268435456]", 200);
  const Plan plan = value_of(plan_of_huge(graph, library, {}));
  REQUIRE(plan.has_plan());
  CHECK(*plan.objective_nanoseconds > 0);
  CHECK(summarize(plan).compute_nanoseconds > 0);
}

TEST_CASE("more bytes than the solver counts in are an error") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = products(library, "f8e4m3fn[268435456,268435456]", 100);
  PlanOptions options;
  options.memory_limit = std::int64_t{80} << 30;
  // On two mesh dims, and on three, where smaller spaces are searched before.
  for (const char* mesh : {"2,4", "2,2,2"}) {
    CAPTURE(mesh);
    CHECK_CODE(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                         default_topology(), library, options),
               ErrorCode::kProblemTooLarge);
  }
}

TEST_CASE("figures at the edge of doubles make no nonsense") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::mlp(library);
  for (const TopologyField& field : topology_fields()) {
    for (const double figure : {1e-300, 1e300}) {
      Topology topology = default_topology();
      (topology.*field.figure).value = figure;
      if (!check_topology(topology)) continue;
      CAPTURE(field.key);
      CAPTURE(figure);
      PlanOptions options;
      options.memory_limit = topology.allocatable_bytes();
      const Plan plan =
          value_of(plan_of_huge(graph, library, options, topology));
      if (!plan.has_plan()) continue;
      CHECK(*plan.objective_nanoseconds >= 0);
      CHECK(plan.lower_bound_nanoseconds <= *plan.objective_nanoseconds);
    }
  }
}

}  // namespace
}  // namespace shardprop
