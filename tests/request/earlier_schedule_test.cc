// Reads plans that were saved before plans stated their buckets. The file is of the
// commit 4aef40b9.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/request/saved_plan.h>

#include <algorithm>
#include <string>

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
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
  const JudgedPlan judged = value_of(judge_plan(saved, graph, library));
  CHECK(judged.differences.empty());
  CHECK(judged.note.find("the plan was saved before plans stated") == 0);
  CHECK(has_bucket(judged.plan));
  CHECK(judged.plan.outputs == saved.outputs);
  // The plan that is written is of today.
  const Plan written = value_of(parse_plan_json(plan_to_json(judged.plan)));
  const JudgedPlan again = value_of(judge_plan(written, graph, library));
  CHECK(again.differences.empty());
  CHECK(again.note.empty());
  CHECK(again.plan == judged.plan);
}

}  // namespace
}  // namespace shardprop
