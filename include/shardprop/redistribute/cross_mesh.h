// `plan_between_meshes` plans a redistribution between two meshes. Their ranks
// may be equal, overlapping or disjoint. Both sides may have any sharding, with
// uneven or empty shards.
//
// Every rank of the target receives exactly the elements that it lacks,
// directly from a rank that has them; no plan can receive less. If several
// ranks have the same shard, the pieces are spread over them. Ranks on the
// receiver's own node come first, then the least busy ones. All pieces between
// two ranks go in one message. Partials are reduced on the source's mesh first,
// to the layout that makes the total cheapest.
//
//   f32[8] S(0) on ranks 0..1  ->  S(0) on ranks 1..3
//   rank 0: [0,4)   rank 1: [4,8)       rank 1 wants [0,3), 2 [3,6), 3 [6,8)
//   0 -> 1 [0,3);  0 -> 2 [3,4);  1 -> 2 [4,6);  1 -> 3 [6,8)
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/placement/tensor_spec.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <cstdint>
#include <vector>

namespace shardprop {

// `MeshTransfer` is one message: pieces of the full tensor, packed one after
// the other, each in row-major order. A piece is one interval per tensor dim.
struct MeshTransfer {
  std::int64_t src_rank = 0;
  std::int64_t dst_rank = 0;
  std::vector<InlineVector<Interval, 4>> pieces;
  std::int64_t bytes = 0;
  friend bool operator==(const MeshTransfer&, const MeshTransfer&) = default;
};

// `CrossMeshPlan` is a redistribution between two meshes, with its cost.
struct CrossMeshPlan {
  // Reductions of partials on the source's mesh, before the sends; often empty.
  RedistributePlan before;
  Layout sent_layout;  // layout of the source when the sends start
  // Messages in order of source rank, then target rank. Elements that a rank of
  // both meshes has and needs stay in place and are in no transfer.
  std::vector<MeshTransfer> transfers;

  std::int64_t sent_bytes = 0;      // of the busiest sender, without `before`
  std::int64_t received_bytes = 0;  // of the busiest receiver
  std::int64_t peak_bytes = 0;      // as in RedistributePlan
  std::int64_t nanoseconds = 0;     // of `before` and the sends

  friend bool operator==(const CrossMeshPlan&, const CrossMeshPlan&) = default;
};

// Plans from `src` to `dst`, whose meshes may also be equal. Errors:
// kRedistributeTensor (another shape or dtype), kRedistributeMeshes (a partial
// target), kRedistributeMemory, kRedistributeMeshTooLarge (more than 2^18
// messages), and those of RedistributePlanner for the reductions.
Result<CrossMeshPlan> plan_between_meshes(
    const TensorSpec& src, const TensorSpec& dst, const Topology& topology,
    const RedistributeOptions& options = {});

}  // namespace shardprop
