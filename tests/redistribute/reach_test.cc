// Tests that one search for all layouts gives the planner's results for each
// pair.
#include "redistribute/recent_reaches.h"

#include "support/placement_gen.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <shardprop/placement/partials.h>

#include <thread>
#include <vector>

namespace shardprop {
namespace {

using redistribute::Reach;
using testing::property;
using testing::value_of;

constexpr std::int64_t kFar = std::int64_t{1} << 50;

Topology some_topology() {
  Topology topology = default_topology();
  topology.engine =
      *rc::gen::element(Engine::kNccl, Engine::kMpi, Engine::kThreads);
  topology.devices_per_node.value =
      static_cast<double>(*rc::gen::element(2, 4, 8));
  return topology;
}

// Cut evenly by most layouts, as often as not.
TensorMeta some_meta() {
  const int rank = *rc::gen::inRange(1, 4);
  Dims shape;
  for (int d = 0; d < rank; ++d) {
    shape.push_back(*rc::gen::inRange<std::int64_t>(0, 40) *
                    *rc::gen::element<std::int64_t>(1, 12, 512));
  }
  return value_of(TensorMeta::contiguous(
      shape, *rc::gen::element(DType::kBF16, DType::kF32, DType::kI16)));
}

std::vector<Placement> partials_of(const Layout& layout) {
  std::vector<Placement> out;
  for (const Placement placement : layout.placements()) {
    if (placement.is_partial()) out.push_back(placement);
  }
  return out;
}

bool reaches_partial_from_shard(const Layout& from, const Layout& to) {
  for (int m = 0; m < from.mesh_ndim(); ++m) {
    if (from[m].is_shard() && to[m].is_partial()) return true;
  }
  return false;
}

std::uint64_t code_of(const Reach& reach, const Layout& layout) {
  return to_state(layout, reach.active(), reach.alphabet()).value().code();
}

TEST_CASE("one search finds what the planner finds pair by pair") {
  property(150, [] {
    const DeviceMesh mesh = testing::some_mesh(3, 4);
    const TensorMeta meta = some_meta();
    const auto planner =
        value_of(RedistributePlanner::create(mesh, some_topology()));
    const testing::LayoutChoice plain{.strided = false};
    const auto from =
        canonical(testing::some_layout(mesh.ndim(), meta.rank(), plain), mesh,
                  meta.shape());
    const auto to =
        canonical(testing::some_layout(mesh.ndim(), meta.rank(), plain), mesh,
                  meta.shape());
    if (reaches_partial_from_shard(from, to)) return;
    const auto partials = partials_of(to);
    const auto reach =
        Reach::from(planner, from, meta, partials, Reach::Orders::kAll);
    RC_ASSERT(reach != nullptr);
    const std::int64_t expected = value_of(planner.cost(from, to, meta));
    // In steps, as a search for strategies does; known as soon as it is near
    // enough, and not before.
    std::int64_t limit = *rc::gen::inRange<std::int64_t>(0, 30'000);
    for (; limit < kFar; limit = 2 * limit + 1) {
      reach->extend(limit);
      const std::int64_t found = reach->nanoseconds(code_of(*reach, to));
      if (found != Reach::kBeyond) {
        RC_ASSERT(found == expected);
        RC_ASSERT(found <= limit);
        break;
      }
      RC_ASSERT(expected > limit);
      RC_ASSERT(reach->beyond() <= expected);
    }
    const RedistributePlan plan = reach->plan(to);
    RC_ASSERT(plan.nanoseconds == expected);
    std::int64_t sum = 0;
    for (const RedistributeStep& step : plan.steps) sum += step.nanoseconds;
    RC_ASSERT(sum == expected);
    RC_ASSERT(plan.steps.size() ==
              value_of(planner.plan(from, to, meta)).steps.size());
    if (from != to) {
      RC_ASSERT(plan.steps.front().src == from);
      RC_ASSERT(plan.steps.back().dst == to);
    }
  });
}

TEST_CASE("layouts in the order of the mesh are found without the others") {
  property(100, [] {
    const DeviceMesh mesh = testing::some_mesh(4, 3);
    const TensorMeta meta = some_meta();
    const auto planner =
        value_of(RedistributePlanner::create(mesh, some_topology()));
    const testing::LayoutChoice any{.strided = false};
    const testing::LayoutChoice whole{
        .strided = false, .partial = false, .any_order = false};
    const auto from =
        canonical(testing::some_layout(mesh.ndim(), meta.rank(), any), mesh,
                  meta.shape());
    const auto reach =
        Reach::from(planner, from, meta, {}, Reach::Orders::kOfMesh);
    if (reach == nullptr) return;
    reach->extend(*rc::gen::inRange<std::int64_t>(0, 60'000));
    reach->extend(kFar);
    for (int i = 0; i < 5; ++i) {
      const Layout to = testing::some_layout(mesh.ndim(), meta.rank(), whole);
      RC_ASSERT(reach->nanoseconds(code_of(*reach, to)) ==
                value_of(planner.cost(from, to, meta)));
    }
  });
}

TEST_CASE("tensors of many dims on five mesh dims are searched at once") {
  const auto mesh = value_of(DeviceMesh::parse("2,2,2,2,2"));
  const auto planner =
      value_of(RedistributePlanner::create(mesh, default_topology()));
  const TensorMeta meta = value_of(TensorMeta::parse("bf16[32,64,128,256]"));
  property(5, [&] {
    const testing::LayoutChoice any{.strided = false, .partial = false};
    const testing::LayoutChoice whole{
        .strided = false, .partial = false, .any_order = false};
    const Layout from = testing::some_layout(mesh.ndim(), meta.rank(), any);
    const auto reach =
        Reach::from(planner, from, meta, {}, Reach::Orders::kOfMesh);
    RC_ASSERT(reach != nullptr);
    const Layout to = testing::some_layout(mesh.ndim(), meta.rank(), whole);
    const std::int64_t expected = value_of(planner.cost(from, to, meta));
    reach->extend(expected);
    RC_ASSERT(reach->nanoseconds(code_of(*reach, to)) == expected);
    RC_ASSERT(reach->plan(to).nanoseconds == expected);
  });
}

TEST_CASE("threads share what is listed of a mesh's layouts") {
  const auto mesh = value_of(DeviceMesh::parse("2,2,2,2"));
  const auto planner =
      value_of(RedistributePlanner::create(mesh, default_topology()));
  const TensorMeta meta = value_of(TensorMeta::parse("bf16[32,64,128]"));
  const Layout from = value_of(Layout::parse("S(0),S(0),S(1),R"));
  std::vector<std::vector<std::int64_t>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found) {
    threads.emplace_back([&] {
      const auto reach =
          Reach::from(planner, from, meta, {}, Reach::Orders::kAll);
      reach->extend(kFar);
      for (const char* to :
           {"R,R,R,R", "S(2),S(1),S(0),S(0)", "R,S(2),R,S(2)"}) {
        const Layout layout = value_of(Layout::parse(to));
        mine.push_back(reach->nanoseconds(code_of(*reach, layout)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : found) {
    CHECK(mine == found.front());
    CHECK(mine.front() > 0);
  }
}

TEST_CASE("a plan does not depend on how far the search had gone before") {
  property(150, [] {
    const DeviceMesh mesh = testing::some_mesh(3, 4);
    const TensorMeta meta = some_meta();
    const auto planner =
        value_of(RedistributePlanner::create(mesh, some_topology()));
    const bool any_order = *rc::gen::arbitrary<bool>();
    const auto orders =
        any_order ? Reach::Orders::kAll : Reach::Orders::kOfMesh;
    const auto from = canonical(
        testing::some_layout(mesh.ndim(), meta.rank(), {.strided = false}),
        mesh, meta.shape());
    const Layout to = testing::some_layout(
        mesh.ndim(), meta.rank(),
        {.strided = false, .partial = false, .any_order = any_order});
    const auto once = Reach::from(planner, from, meta, {}, orders);
    RC_ASSERT(once != nullptr);
    once->extend(value_of(planner.cost(from, to, meta)));
    const auto often = Reach::from(planner, from, meta, {}, orders);
    std::int64_t limit = *rc::gen::inRange<std::int64_t>(0, 30'000);
    for (; limit < kFar; limit += limit / 3 + 1000) often->extend(limit);
    RC_ASSERT(once->plan(to) == often->plan(to));
  });
}

TEST_CASE("a search that was put back is reused by one caller at a time") {
  const auto planner = value_of(RedistributePlanner::create(
      value_of(DeviceMesh::parse("2,4")), default_topology()));
  const auto whole = Layout::replicated(2);
  const auto rows = value_of(Layout::parse("S(0),R"));
  const auto sum = Placement::partial(ReduceOp::kSum);
  redistribute::RecentReaches recent;
  const auto take = [&](const Layout& layout, std::int64_t size,
                        std::span<const Placement> partials = {}) {
    const auto meta = value_of(TensorMeta::contiguous({size, 8}, DType::kF32));
    return recent.take(planner, layout, meta, partials, Reach::Orders::kAll);
  };
  const auto is_used = [&](const Reach& reach) {
    return reach.nanoseconds(code_of(reach, whole)) != Reach::kBeyond;
  };
  auto first = take(rows, 16);
  CHECK(!is_used(*first));
  first->extend(kFar);
  recent.put_back(std::move(first));
  CHECK(!is_used(*take(rows, 32)));
  CHECK(!is_used(*take(rows, 16, {&sum, 1})));
  auto again = take(rows, 16);
  CHECK(is_used(*again));
  CHECK(!is_used(*take(rows, 16)));
  recent.put_back(std::move(again));
  recent.put_back(nullptr);
  SUBCASE("fifteen others leave it") {
    for (int n = 1; n <= 15; ++n) recent.put_back(take(rows, 100 + n));
    CHECK(is_used(*take(rows, 16)));
  }
  SUBCASE("sixteen push it out") {
    for (int n = 1; n <= 16; ++n) recent.put_back(take(rows, 100 + n));
    CHECK(!is_used(*take(rows, 16)));
  }
}

TEST_CASE("strided shards and limits of memory are left to the planner") {
  const auto mesh = value_of(DeviceMesh::parse("2,2"));
  const auto meta = value_of(TensorMeta::parse("f32[16,8]"));
  const auto planner =
      value_of(RedistributePlanner::create(mesh, default_topology()));
  const auto strided = value_of(Layout::parse("SS(0,4),R"));
  CHECK(Reach::from(planner, strided, meta, {}, Reach::Orders::kAll) ==
        nullptr);
  const auto bounded = value_of(RedistributePlanner::create(
      mesh, default_topology(), {.memory_limit = 1 << 20}));
  const auto whole = value_of(Layout::parse("R,R"));
  CHECK(Reach::from(bounded, whole, meta, {}, Reach::Orders::kAll) == nullptr);
}

}  // namespace
}  // namespace shardprop
