// Plans of random programs and of the example graphs say how they are run, and
// say the same when they are read back.
#include "plan/invariants.h"
#include "plan/random_graph.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/report/plan_json.h>

#include <random>
#include <string>

namespace shardprop {
namespace {

using testing::dear_compute;
using testing::value_of;

void check_runs(const Plan& plan) {
  test::check_plan(plan);
  const Plan back = value_of(parse_plan_json(plan_to_json(plan)));
  CHECK(back == plan);
  const std::string by_dim = plan_to_json(plan, RankForm::kByDim);
  CHECK(value_of(parse_plan_json(by_dim)) == plan);
}

Plan planned(const Graph& graph, const OpLibrary& library, const char* mesh,
             const Topology& topology, const PlanOptions& options) {
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)), topology,
                            library, options));
}

TEST_CASE("plans of random programs can be run") {
  const OpLibrary& library = testing::standard_library();
  std::mt19937 draw(17);
  const Topology topology = dear_compute();
  for (int round = 0; round < 24; ++round) {
    CAPTURE(round);
    const Graph graph =
        test::random_graph(library, draw, 4 + static_cast<int>(draw() % 12));
    PlanOptions options;
    options.optimizer = round % 2 == 0 ? Optimizer::kAdamW : Optimizer::kNone;
    options.overlap = 0.5;
    for (const char* mesh : {"2", "3", "2,2"}) {
      CAPTURE(mesh);
      check_runs(planned(graph, library, mesh, topology, options));
    }
  }
}

TEST_CASE("plans of the example graphs can be run") {
  const OpLibrary& library = testing::standard_library();
  const Topology topology = dear_compute();
  std::size_t programs = 0;
  std::size_t arguments = 0;
  std::size_t random = 0;
  std::size_t views = 0;
  std::size_t copies = 0;
  std::size_t in_flight = 0;
  for (const char* name : {"llama3_train", "t5_train", "resnet_train",
                           "mixtral_infer", "mlp_dynamic", "block_composite"}) {
    CAPTURE(name);
    const Graph graph = value_of(load_graph(
        "examples/graphs/tiny/" + std::string(name) + ".json.gz", library));
    for (const char* mesh : {"3", "2,2"}) {
      CAPTURE(mesh);
      PlanOptions options;
      options.optimizer = Optimizer::kAdamW;
      options.work_limit = 20'000'000;
      options.overlap = std::string(mesh) == "2,2" ? 1 : 0;
      const Plan plan = planned(graph, library, mesh, topology, options);
      check_runs(plan);
      for (const PlannedNode& node : plan.nodes) {
        programs += node.local.program ? 1 : 0;
        arguments += node.local.arguments.size();
        random += node.is_random ? 1 : 0;
      }
      for (const PlannedCopy& copy : plan.copies) {
        copies += copy.steps.empty() ? 0 : 1;
        in_flight += copy.in_flight ? 1 : 0;
        views += copy.views.size() + copy.undone.size();
      }
    }
  }
  CHECK(programs > 10);
  CHECK(arguments > 100);
  CHECK(random > 0);
  CHECK(views > 20);
  CHECK(copies > 100);
  CHECK(in_flight > 20);
}

}  // namespace
}  // namespace shardprop
