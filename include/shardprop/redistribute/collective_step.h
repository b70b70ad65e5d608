// `CollectiveStep` is one planned collective with its cost. Every group over
// `mesh_dims` runs it at the same time.
//
//   bf16[4096,4096] P(sum,f32) -> S(0) on [8]:
//     {kReduceScatter, {0}, kSum, kF32, 67108864, 58720256, ...}
//
// The planner fills it once: the redistribution planner, or the cost model of
// an operator's local program. Coalescing, execution, plans and reports only
// read it.
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <optional>

namespace shardprop {

struct CollectiveStep {
  CollectiveKind kind = CollectiveKind::kSlice;
  DimIndices mesh_dims;  // ascending
  // Reduce op of all_reduce and reduce_scatter. A sum combined with an average
  // is kSum; a factor for the averaged mesh dims is applied afterwards.
  std::optional<ReduceOp> reduce_op;
  // The dtype that is sent: the tensor's dtype, or the reduction dtype.
  DType dtype = DType::kF32;
  // S or B of collective_cost.h, including padding; the cost is for this size.
  std::int64_t message_bytes = 0;
  // Maximum over ranks of the sent bytes, padded.
  std::int64_t bytes_per_rank = 0;
  std::int64_t nanoseconds = 0;
  // True for an all_to_all in which every rank sends messages of equal size to
  // all other ranks.
  bool padded = false;
  // True if pieces that are not contiguous in the tensor, or are cast, are
  // staged in a buffer. The cost includes this pass over memory.
  bool staged = false;

  friend bool operator==(const CollectiveStep&,
                         const CollectiveStep&) = default;
};

}  // namespace shardprop
