#include <shardprop/request/saved_plan.h>

#include "request/refused.h"
#include "support/result_checks.h"
#include "support/temporary_file.h"

#include <shardprop/report/plan_json.h>
#include <shardprop/request/plan_request.h>

#include <string>
#include <utility>

namespace shardprop {
namespace {

using testing::refused;
using testing::value_of;

constexpr const char* kCustomOp = "tests/golden/inputs/custom_op.json";

PlanRequest custom_request() {
  LoadedGraph loaded = value_of(load_graph(kCustomOp, GraphReading()));
  PlanRequest request{.graph = loaded.graph,
                      .library = loaded.library,
                      .mesh = value_of(planned_mesh("dp=2")),
                      .topology = default_topology()};
  request.options = value_of(plan_options({}, request.topology));
  return request;
}

TEST_CASE("a saved plan is judged, or read as written") {
  const PlanRequest request = custom_request();
  Plan saved = value_of(plan(request));
  REQUIRE(saved.nodes.size() > 0);
  saved.nodes[0].compute_nanoseconds += 1;
  saved.unsupported.clear();
  SavedPlanUse use{.place = "--plan a.json"};
  const JudgedPlan judged =
      value_of(take_plan(saved, use, *request.graph, *request.library));
  CHECK(judged.differences.size() > 0);
  CHECK(judged.plan.unsupported.size() == 1);
  use.is_judged = false;
  const JudgedPlan kept =
      value_of(take_plan(saved, use, *request.graph, *request.library));
  CHECK(kept.differences.empty());
  CHECK(kept.plan.nodes == saved.nodes);
  CHECK(kept.plan.is_proof_given);
  CHECK(kept.plan.unsupported.size() == 1);
}

TEST_CASE("a saved plan belongs to its graph and its mesh") {
  const PlanRequest request = custom_request();
  Plan saved = value_of(plan(request));
  const auto taken = [&](const SavedPlanUse& use) {
    return take_plan(saved, use, *request.graph, *request.library);
  };
  SavedPlanUse use{.place = "--plan a.json", .mesh = saved.mesh};
  CHECK(taken(use));
  use.mesh = value_of(planned_mesh("dp=4"));
  CHECK(refused(taken(use), ErrorCode::kPlanOtherGraph).message ==
        "the plan was made for another mesh");
  use.mesh.reset();
  use.strict = true;
  CHECK(refused(taken(use), ErrorCode::kNoStrategy).location == use.place);
  saved.graph_hash = "0000000000000000";
  const Error error = refused(taken(use), ErrorCode::kPlanOtherGraph);
  CHECK(error.message == "the plan was made for another graph");
  CHECK(error.location == "--plan a.json");
}

TEST_CASE("a plan file is read, and its errors name it") {
  const Plan saved = value_of(plan(custom_request()));
  {
    const testing::TemporaryFile file(plan_to_json(saved));
    CHECK(plan_to_json(value_of(load_plan(file.path(), "a"))) ==
          plan_to_json(saved));
    CHECK(refused(load_plan(file.path(), "a", 10), ErrorCode::kPlanFile)
              .location == "a");
  }
  std::string path;
  {
    const testing::TemporaryFile file("{");
    path = file.path();
    CHECK(refused(load_plan(path, "a"), ErrorCode::kPlanFile)
              .location.starts_with("a"));
  }
  CHECK(refused(load_plan(path, "a"), ErrorCode::kPlanFile).location == "a");
}

}  // namespace
}  // namespace shardprop
