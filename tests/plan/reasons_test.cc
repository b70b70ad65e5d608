// Tests the reasons that a plan gives for copies if a pin or a recipe leaves no
// choice.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

using testing::value_of;

std::int64_t count_reasons(const Plan& plan, std::string_view part) {
  return std::count_if(plan.copies.begin(), plan.copies.end(),
                       [&](const PlannedCopy& copy) {
                         return copy.reason.find(part) != std::string::npos;
                       });
}

Plan plan_with_reasons(const PlanOptions& options) {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2,tp=2")),
                            default_topology(), library, options));
}

TEST_CASE("a pin that leaves no other layout is named") {
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  options.pins.push_back(value_of(Pin::parse("stored:*.weight=S(0),R")));
  const Plan plan = plan_with_reasons(options);
  CHECK(count_reasons(plan, "; pinned by --pin 'stored:*.weight=S(0),R'") > 0);
  CHECK(count_reasons(plan, "the recipe") == 0);
}

TEST_CASE("a recipe that leaves no other layout is named") {
  PlanOptions options;
  options.recipe = value_of(Recipe::parse("fsdp=dp,megatron=tp"));
  const Plan plan = plan_with_reasons(options);
  CHECK(count_reasons(plan, "; the recipe fsdp=dp,megatron=tp asks for it") >
        0);
  CHECK(count_reasons(plan, "pinned by") == 0);
}

}  // namespace
}  // namespace shardprop
