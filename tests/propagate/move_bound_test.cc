// A bound of a move is admissible: no plan of the move costs less.
#include "redistribute/reference_search.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <propagate/move_bound.h>
#include <shardprop/redistribute/planner.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("no plan of a move costs less than its bounds") {
  const std::vector<Placement> placements = {
      Placement::replicate(), Placement::shard(0), Placement::shard(1),
      Placement::partial(ReduceOp::kSum)};
  int compared = 0;
  int positive = 0;
  for (const char* shape : {"2", "4", "2,2", "4,2", "2,2,2"}) {
    const DeviceMesh mesh = value_of(DeviceMesh::parse(shape));
    if (mesh.ndim() == 3 && !testing::full_counts()) continue;
    const std::vector<Layout> layouts = testing::all_layouts(mesh, placements);
    for (const int devices_per_node : {2, 8}) {
      Topology topology = default_topology();
      topology.devices_per_node.value = devices_per_node;
      const MoveBound bound(topology, mesh);
      const auto planner =
          value_of(RedistributePlanner::create(mesh, topology, {}));
      for (const char* text : {"bf16[5,3]", "f32[8,16]", "f32[4096,4096]"}) {
        const TensorMeta meta = value_of(TensorMeta::parse(text));
        for (const Layout& from : layouts) {
          for (const Layout& to : layouts) {
            const auto cost = planner.cost(from, to, meta);
            if (!cost) continue;
            INFO(shape << " " << text << " " << to_string(from) << " -> "
                       << to_string(to));
            const std::int64_t least = bound.at_least(from, to, meta);
            CHECK(least <= *cost);
            positive += least > 0 ? 1 : 0;
            ++compared;
            for (int m = 0; m < mesh.ndim(); ++m) {
              if (change(from[m], to[m]) != Change::kCollective) continue;
              CHECK(bound.at_least(m, from[m], to[m]) <= *cost);
            }
          }
        }
      }
    }
  }
  CHECK(compared > 1'000);
  CHECK(2 * positive > compared);
}

}  // namespace
}  // namespace shardprop
