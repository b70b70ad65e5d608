// Redistribution between two meshes: other ranks, overlapping or disjoint, any
// sharding on both sides, uneven or empty shards.
//
// Every rank of the target receives just what it lacks, straight from a rank
// that holds it: no plan can receive less. Where several ranks hold the same
// shard the pieces are spread over them, those of the receiver's own node
// first, the least busy of those next. All pieces between two ranks go as one
// message. Partials are reduced on the source's mesh before, into whatever
// makes the whole cheapest.
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

// One message: pieces of the whole tensor, packed one behind the other, each
// in row-major order. A piece is an interval per tensor dim.
struct MeshTransfer {
  std::int64_t src_rank = 0;
  std::int64_t dst_rank = 0;
  std::vector<InlineVector<Interval, 4>> pieces;
  std::int64_t bytes = 0;
  friend bool operator==(const MeshTransfer&, const MeshTransfer&) = default;
};

struct CrossMeshPlan {
  // On the source's mesh: reductions of partials. Often empty.
  RedistributePlan before;
  Layout sent_layout;  // of the source when the sends start
  // By source rank, then target rank. Elements that a rank of both meshes
  // holds and wants stay where they are and stand in no transfer.
  std::vector<MeshTransfer> transfers;

  std::int64_t sent_bytes = 0;      // by the busiest sender, `before` left out
  std::int64_t received_bytes = 0;  // by the busiest receiver
  std::int64_t peak_bytes = 0;      // as RedistributePlan
  std::int64_t nanoseconds = 0;     // `before` and the sends

  friend bool operator==(const CrossMeshPlan&, const CrossMeshPlan&) = default;
};

// The meshes may be equal too. Errors: kRedistributeTensor (other shape or
// dtype), kRedistributeMeshes (a partial target), kRedistributeMemory,
// kRedistributeMeshTooLarge (more than 2^18 messages), and those of
// RedistributePlanner for the reductions.
Result<CrossMeshPlan> plan_between_meshes(
    const TensorSpec& src, const TensorSpec& dst, const Topology& topology,
    const RedistributeOptions& options = {});

}  // namespace shardprop
