// Reads plans that earlier versions saved, whose transfers ran in another schedule.
// The file without buckets is of the commit 4aef40b9.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/request/plan_request.h>
#include <shardprop/request/saved_plan.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

bool has_bucket(const Plan& plan) {
  return std::any_of(
      plan.copies.begin(), plan.copies.end(),
      [](const PlannedCopy& copy) { return copy.bucket.has_value(); });
}

TEST_CASE("a plan without buckets is priced again, with one note") {
  const OpLibrary& library = testing::standard_library();
  const std::string path =
      "tests/data/plans/llama3_train_without_buckets.json.gz";
  const Plan saved = value_of(load_plan(path, path));
  REQUIRE_FALSE(saved.windows.empty());
  REQUIRE_FALSE(has_bucket(saved));
  const auto graph = value_of(
      graph_of(saved,
               std::make_shared<const Graph>(value_of(load_graph(
                   "examples/graphs/tiny/llama3_train.json.gz", library))),
               library));
  const JudgedPlan judged = value_of(judge_plan(saved, *graph, library));
  CHECK(judged.differences.empty());
  CHECK(judged.note.find("the plan was saved before plans stated") == 0);
  CHECK(has_bucket(judged.plan));
  REQUIRE(judged.plan.outputs.size() == saved.outputs.size());
  for (std::size_t o = 0; o < saved.outputs.size(); ++o) {
    CHECK(judged.plan.outputs[o].value.layout == saved.outputs[o].value.layout);
  }
}

// Returns the plan as a version saved it whose windows had one load for all
// micro-batches. Precondition: each window has three loads.
Plan with_undivided_windows(Plan plan) {
  std::vector<PlannedWindow> windows;
  for (const PlannedWindow& load : plan.windows) {
    if (load.micro_batches == MicroBatches::kFirst) {
      windows.push_back({.begins_at = load.begins_at});
    }
    windows.back().compute_nanoseconds += load.compute_nanoseconds;
    windows.back().overlappable_nanoseconds += load.overlappable_nanoseconds;
  }
  plan.windows = std::move(windows);
  plan.objective_nanoseconds = *plan.objective_nanoseconds - 1;
  return plan;
}

TEST_CASE("a plan of undivided windows is priced again, with one note") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
  PlanOptions options;
  options.overlap = 1;
  options.optimizer = Optimizer::kAdamW;
  options.accumulate = 4;
  options.recipe = value_of(Recipe::parse("ddp=dp"));
  options.work_limit = 20'000'000;
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2")),
                         default_topology(), library, options));
  REQUIRE_FALSE(plan.windows.empty());
  CHECK(value_of(judge_plan(plan, graph, library)).note.empty());

  Plan saved = with_undivided_windows(plan);
  const auto shared = std::find_if(
      saved.copies.begin(), saved.copies.end(), [](const PlannedCopy& copy) {
        return copy.once_a_step && !copy.steps.empty();
      });
  REQUIRE(shared != saved.copies.end());
  // A version with undivided windows rounds the share of a step in another way.
  shared->steps.back().nanoseconds += 1;
  const JudgedPlan judged = value_of(judge_plan(saved, graph, library));
  CHECK(judged.differences.empty());
  CHECK(judged.note.find("the plan was saved before windows were divided by "
                         "micro-batch; it takes ") == 0);
  CHECK(judged.plan.objective_nanoseconds == plan.objective_nanoseconds);
  CHECK(judged.plan.windows == plan.windows);

  shared->steps.back().nanoseconds += 1;
  CHECK(value_of(judge_plan(saved, graph, library)).differences.size() == 1);
}

}  // namespace
}  // namespace shardprop
