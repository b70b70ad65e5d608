// Programs far longer, wider and deeper than those of other tests: what takes
// more than linear time or a stack frame an operator does not come back.
#include "plan/evaluate/cached_copies.h"
#include "support/made_up_program.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

const OpLibrary& library() { return testing::standard_library(); }

Graph graph_of(const std::string& program) {
  return value_of(read_graph(program, "made_up", library()));
}

Plan plan_for_mesh(const Graph& graph, const char* mesh) {
  PlanOptions options;
  options.time_limit_seconds = 300;
  options.work_limit = 50'000'000;
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            default_topology(), library(), options));
}

TEST_CASE("views of views, more than a stack has frames or 16 bits count") {
  const Graph graph = graph_of(view_chain_program(70'000));
  const Plan plan = plan_for_mesh(graph, "2,2");
  CHECK(plan.status == PlanStatus::kOptimal);
  REQUIRE(plan.nodes.size() == 70'000);
  CHECK(plan.copies.empty());
  CHECK(plan.objective_nanoseconds == 0);
}

TEST_CASE("a value of many users") {
  const Graph graph = graph_of(fan_program(2000));
  const Plan plan = plan_for_mesh(graph, "2,2");
  REQUIRE(plan.has_plan());
  CHECK(plan.nodes.size() == 4001);
}

TEST_CASE("layers by the hundred, a value used in each") {
  const Graph graph = graph_of(training_program(4000));
  const Plan plan = plan_for_mesh(graph, "2,2");
  REQUIRE(plan.has_plan());
  CHECK(plan.nodes.size() == graph.nodes().size());
}

TEST_CASE("meshes of four and five dims") {
  const Graph graph = graph_of(training_program(60));
  REQUIRE(plan_for_mesh(graph, "2,2,2,2").has_plan());
  // A tensor of three dims has 10,000 layouts: more than are searched.
  const Plan plan = plan_for_mesh(graph, "2,2,2,2,2");
  REQUIRE(plan.has_plan());
  CHECK(plan.status == PlanStatus::kFeasible);
  CHECK(plan.space.most_runs == 2);
  CHECK(plan.lower_bound_nanoseconds > 0);
  CHECK(plan.lower_bound_nanoseconds <= *plan.objective_nanoseconds);
}

TEST_CASE("copies alive in a slot are found without a look at the others") {
  const Graph graph = graph_of(fan_program(2));
  const PlanProblem problem = value_of(
      PlanProblem::create(graph, value_of(DeviceMesh::parse("2")),
                          default_topology(), library(), PlanOptions()));
  PlanAssignment plan;
  const auto add = [&](std::int64_t produced_at, std::int64_t freed_at) {
    AssignedCopy copy;
    copy.buffer = PlanBufferId(0);
    copy.produced_at = produced_at;
    copy.freed_at = freed_at;
    plan.copies.push_back(copy);
  };
  constexpr std::int64_t kSlots = 1000;
  for (std::int64_t slot = 0; slot < kSlots; ++slot) {
    add(slot, slot);
    if (slot % 100 == 0) add(slot, slot + 150);
    if (slot % 250 == 0) add(slot, slot);
  }
  const CachedCopies cached(problem, plan);
  CHECK(cached.of(PlanBufferId(0)).size() == plan.copies.size());
  CHECK(cached.of(PlanBufferId(1)).empty());
  for (std::int64_t slot = -1; slot <= kSlots + 200; ++slot) {
    std::vector<std::size_t> found;
    cached.cached_at(PlanBufferId(0), slot,
                     [&](std::size_t copy) { found.push_back(copy); });
    std::sort(found.begin(), found.end());
    std::vector<std::size_t> required;
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      if (plan.copies[c].produced_at <= slot &&
          slot <= plan.copies[c].freed_at) {
        required.push_back(c);
      }
    }
    CHECK(found == required);
  }
}

}  // namespace
}  // namespace shardprop
