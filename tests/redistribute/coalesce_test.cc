#include <shardprop/redistribute/coalesce.h>

#include "support/result_checks.h"

#include <shardprop/redistribute/planner.h>

#include <random>

namespace shardprop {
namespace {

using testing::value_of;

struct Tensors {
  DeviceMesh mesh;
  std::vector<RedistributePlan> plans;

  void add(const char* tensor, const char* src, const char* dst) {
    const auto meta = value_of(TensorMeta::parse(tensor));
    const auto planner =
        value_of(RedistributePlanner::create(mesh, default_topology()));
    plans.push_back(value_of(planner.plan(value_of(Layout::parse(src)),
                                          value_of(Layout::parse(dst)), meta)));
  }
  CoalescedPlan coalesced() const {
    std::vector<const RedistributePlan*> each;
    for (const RedistributePlan& plan : plans) each.push_back(&plan);
    return coalesce(each, mesh, default_topology());
  }
};

// Checks that every step of every plan is in one launch, after its earlier
// steps.
void check_complete(const Tensors& tensors, const CoalescedPlan& plan) {
  std::vector<std::size_t> next(tensors.plans.size());
  std::int64_t nanoseconds = 0;
  for (const CoalescedLaunch& launch : plan.launches) {
    nanoseconds += launch.step.nanoseconds;
    std::int64_t bytes = 0;
    for (const CoalescedLaunch::Member& member : launch.members) {
      CHECK(member.step == next[member.tensor]++);
      const RedistributeStep& step =
          tensors.plans[member.tensor].steps[member.step];
      CHECK(step.kind == launch.step.kind);
      CHECK(step.mesh_dims == launch.step.mesh_dims);
      bytes += step.bytes_per_rank;
    }
    CHECK(bytes == launch.step.bytes_per_rank);
  }
  std::int64_t separate = 0;
  for (std::size_t t = 0; t < tensors.plans.size(); ++t) {
    CHECK(next[t] == tensors.plans[t].steps.size());
    separate += tensors.plans[t].nanoseconds;
  }
  CHECK(nanoseconds == plan.nanoseconds);
  CHECK(separate == plan.separate_nanoseconds);
  CHECK(plan.nanoseconds <= plan.separate_nanoseconds);
}

TEST_CASE("equal gathers of several weights pay one latency") {
  Tensors tensors{value_of(DeviceMesh::parse("8")), {}};
  for (int i = 0; i < 4; ++i) tensors.add("bf16[1024,1024]", "S(0)", "R");
  const CoalescedPlan plan = tensors.coalesced();
  check_complete(tensors, plan);
  REQUIRE(plan.launches.size() == 1);
  // One gather of 8 MiB in all.
  CHECK(plan.nanoseconds ==
        value_of(RedistributePlanner::create(tensors.mesh, default_topology()))
            .cost(value_of(Layout::parse("S(0)")), value_of(Layout::parse("R")),
                  value_of(TensorMeta::parse("bf16[4096,1024]")))
            .value());
  CHECK(plan.nanoseconds < plan.separate_nanoseconds * 3 / 4);
}

TEST_CASE("reductions of different ops or dtypes stay apart") {
  Tensors tensors{value_of(DeviceMesh::parse("8")), {}};
  tensors.add("f32[64]", "P(sum)", "R");
  tensors.add("f32[64]", "P(max)", "R");
  tensors.add("bf16[64]", "P(sum)", "R");
  tensors.add("f32[32]", "P(sum)", "R");
  const CoalescedPlan plan = tensors.coalesced();
  check_complete(tensors, plan);
  CHECK(plan.launches.size() == 3);
}

TEST_CASE("a launch waits for tensors that are still a step away") {
  Tensors tensors{value_of(DeviceMesh::parse("dp=2,tp=4")), {}};
  // The second gathers over dp alone, the first reduces over tp before.
  tensors.add("bf16[4096,64]", "S(0),P(sum)", "R,S(1)");
  tensors.add("bf16[4096,64]", "S(0),R", "R,R");
  const CoalescedPlan plan = tensors.coalesced();
  check_complete(tensors, plan);
  REQUIRE(tensors.plans[0].steps.size() == 2);
  CHECK(plan.launches.size() == 2);
}

TEST_CASE("any set of plans coalesces completely and never costs more") {
  std::mt19937 random(31);
  const char* layouts[] = {"R,R",         "S(0),R",       "R,S(1)",
                           "S(0),S(0)",   "S(1),S(0)",    "P(sum),R",
                           "P(sum),S(1)", "P(sum),P(sum)"};
  const char* shapes[] = {"bf16[64,48]", "f32[512,1024]", "bf16[7,5]"};
  for (int round = 0; round < 60; ++round) {
    Tensors tensors{value_of(DeviceMesh::parse("dp=2,tp=4")), {}};
    for (int t = 0; t < 6; ++t) {
      tensors.add(shapes[random() % 3], layouts[random() % 8],
                  layouts[random() % 5]);
    }
    check_complete(tensors, tensors.coalesced());
  }
}

}  // namespace
}  // namespace shardprop
