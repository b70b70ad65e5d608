// Tests that the parts of the reported compute add up to it, by kind and by
// module.
#include "report/module_tree.h"
#include "report/plan_totals.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <filesystem>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

// Returns the time of kernel boundaries.
std::int64_t check_parts(const Plan& plan) {
  std::int64_t kinds = 0;
  std::int64_t cuts = 0;
  for (const ComputeShare& share : compute_by_kind(plan)) {
    kinds += share.nanoseconds;
    if (share.name == "kernel boundaries") cuts = share.nanoseconds;
  }
  CHECK(kinds == plan.summary.compute_nanoseconds);
  const Module root = module_tree(plan);
  CHECK(root.times.compute[0] + root.times.compute[1] +
            plan.optimizer_nanoseconds ==
        plan.summary.compute_nanoseconds);
  return cuts;
}

TEST_CASE(
    "kinds and modules add up to the compute, kernel boundaries included") {
  const OpLibrary& library = testing::standard_library();
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  options.recipe = value_of(Recipe::parse("fsdp=dp,megatron=tp"));
  std::int64_t cuts = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("examples/graphs/tiny")) {
    if (!entry.path().string().ends_with(".json.gz")) continue;
    CAPTURE(entry.path().string());
    const Graph graph = value_of(load_graph(entry.path().string(), library));
    cuts += check_parts(
        value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=2,tp=2")),
                           default_topology(), library, options)));
  }
  CHECK(cuts > 0);
}

}  // namespace
}  // namespace shardprop
