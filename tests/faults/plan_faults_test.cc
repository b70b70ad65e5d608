#include "faults/failing_machine.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>
#include <shardprop/redistribute/planner.h>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("without memory there is a plan or an error, wherever it ends") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::residual_training(library, 2, "512", "256", "1024");
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2"));
  PlanOptions options;
  options.threads = 2;
  options.memory_limit = std::int64_t{8} << 20;
  options.work_limit = 10'000'000;
  options.time_limit_seconds = 1e6;
  const auto make = [&] {
    return make_plan(graph, mesh, default_topology(), library, options);
  };
  failing_machine::heal();
  REQUIRE(make().has_value());
  const std::int64_t needed = failing_machine::allocations();
  // A search of one space that memory ends may be made up for by another's.
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
  CHECK(refused > 0);
}

TEST_CASE("a redistribution without memory is an error") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,4"));
  const auto spec = [&](const char* text) {
    return value_of(TensorSpec::parse(text, mesh));
  };
  const TensorSpec src = spec("f32[64,32] S(0)@1,S(0)@0");
  const TensorSpec dst = spec("f32[64,32] R,S(1)");
  failing_machine::heal();
  REQUIRE(plan_redistribution(src, dst, default_topology()).has_value());
  const std::int64_t needed = failing_machine::allocations();
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    failing_machine::memory_after(needed * i / 20);
    const auto plan = plan_redistribution(src, dst, default_topology());
    failing_machine::heal();
    if (plan) continue;
    ++refused;
    CHECK(plan.error().code == ErrorCode::kOutOfMemory);
  }
  CHECK(refused > 10);
}

}  // namespace
}  // namespace shardprop
