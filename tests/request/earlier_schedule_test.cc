// Reads plans that were saved before plans stated their buckets. The file is of the
// commit 4aef40b9.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/request/plan_request.h>
#include <shardprop/request/saved_plan.h>

#include <algorithm>
#include <cstddef>
#include <memory>
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

}  // namespace
}  // namespace shardprop
