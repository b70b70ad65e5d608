#include "faults/failing_machine.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"

#include <shardprop/plan/make_plan.h>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("without memory there is a plan or an error, wherever it ends") {
  const OpRegistry registry;
  const RuleBook rules;
  const Graph graph =
      test::residual_training(registry, 2, "512", "256", "1024");
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2"));
  PlanOptions options;
  options.threads = 2;
  options.memory_limit = std::int64_t{8} << 20;
  options.work_limit = 10'000'000;
  options.time_limit_seconds = 1e6;
  const auto make = [&] {
    return make_plan(graph, mesh, default_topology(), rules, registry, options);
  };
  failing_machine::heal();
  REQUIRE(make().has_value());
  const std::int64_t needed = failing_machine::allocations();
  int refused = 0;
  constexpr int kTries = 80;
  for (int i = 0; i < kTries; ++i) {
    failing_machine::memory_after(needed * i / kTries);
    const Result<Plan> plan = make();
    failing_machine::heal();
    CAPTURE(i);
    if (plan) continue;
    ++refused;
    CHECK(plan.error().code == ErrorCode::kOutOfMemory);
    CHECK(!plan.error().help.empty());
  }
  CHECK(refused > kTries / 2);
}

}  // namespace
}  // namespace shardprop
