#include "plan/problem/merged_transfers.h"

#include <shardprop/placement/tensor_spec.h>

#include <doctest/doctest.h>

#include <vector>

namespace shardprop {
namespace {

Layout layout(const char* text) { return Layout::parse(text).value(); }

TEST_CASE("neighbours that are treated alike") {
  const auto uniform = [](const char* text) {
    return MergedTransfers::uniform(layout(text));
  };
  CHECK(uniform("R,R,R,R") == 0b1110);
  CHECK(uniform("S(0),S(0),R,R") == 0b1010);
  CHECK(uniform("S(0),S(1),S(1),R") == 0b0100);
  CHECK(uniform("P(sum),P(sum),R,S(0)") == 0b0010);
  // Cut in another order than one after the other.
  CHECK(uniform("S(0)@1,S(0)@0,R,R") == 0b1000);
  CHECK(uniform("SS(0,2),R,R,R") == 0);
}

TEST_CASE("the merged layout") {
  const auto merged = [](const char* text, MergedTransfers::Ties ties) {
    return to_string(MergedTransfers::merged(layout(text), ties));
  };
  CHECK(merged("S(0),S(0),R,R", 0b1010) == "S(0),R");
  CHECK(merged("S(0),S(0),S(0),R", 0b0110) == "S(0),R");
  CHECK(merged("S(0)@2,S(0)@0,S(0)@1,R", 0b0100) == "S(0)@1,S(0)@0,R");
}

// The test takes every pair of layouts of a tensor. The steps must be valid on
// the mesh itself. A better path may be cheaper by no more than a split of
// merged dims on the way could save.
TEST_CASE("moves on a merged mesh are moves on the mesh") {
  const DeviceMesh mesh = DeviceMesh::parse("2,2,2,2").value();
  const Topology topology = default_topology();
  const RedistributePlanner planner =
      RedistributePlanner::create(mesh, topology).value();
  MergedTransfers moves(topology);
  const std::vector<Layout> layouts = {layout("R,R,R,R"),
                                       layout("S(0),S(0),S(0),S(0)"),
                                       layout("S(0),S(0),R,R"),
                                       layout("R,S(1),S(1),S(1)"),
                                       layout("P(sum),P(sum),P(sum),P(sum)"),
                                       layout("P(sum),P(sum),R,R"),
                                       layout("S(0),S(1),S(1),R"),
                                       layout("S(1),S(1),S(0),S(0)")};
  for (const char* text : {"f32[16,32]", "f32[16,30]"}) {
    const TensorMeta meta = TensorMeta::parse(text).value();
    for (const Layout& a : layouts) {
      for (const Layout& b : layouts) {
        const Layout src = canonical(a, mesh, meta.shape());
        const Layout dst = canonical(b, mesh, meta.shape());
        const auto least = planner.cost(src, dst, meta);
        if (!least) continue;  // a shard to a partial
        CAPTURE(to_string(src));
        CAPTURE(to_string(dst));
        const auto ties =
            MergedTransfers::uniform(src) & MergedTransfers::uniform(dst);
        const RedistributePlan plan = MergedTransfers::unmerged(
            moves.planner(mesh, ties)
                .plan(MergedTransfers::merged(src, ties),
                      MergedTransfers::merged(dst, ties), meta)
                .value(),
            ties, mesh, meta);
        CHECK(plan.nanoseconds >= *least);
        Layout at = src;
        std::int64_t sum = 0;
        std::int64_t bytes = 0;
        for (const RedistributeStep& step : plan.steps) {
          CHECK(step.src == at);
          at = step.dst;
          sum += step.nanoseconds;
          bytes += step.bytes_per_rank;
          // One step of the mesh costs as much.
          const auto alone = planner.cost(step.src, step.dst, meta);
          CHECK(step.nanoseconds >= *alone);
        }
        CHECK(at == dst);
        CHECK(sum == plan.nanoseconds);
        CHECK(bytes == plan.bytes_per_rank);
      }
    }
  }
}

}  // namespace
}  // namespace shardprop
