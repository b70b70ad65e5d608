// CollectiveStep: one collective as it was planned and priced, run at once by
// every group over `mesh_dims`.
//
//   bf16[4096,4096] P(sum,f32) -> S(0) on [8]:
//     {kReduceScatter, {0}, kSum, kF32, 67108864, 58720256, ...}
//
// Filled once by whoever plans it: the redistribution planner, or the pricing
// of an operator's local program. Coalescing, execution, plans and reports read
// it; none of them works a field out again.
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
  // Of all_reduce and reduce_scatter: what terms are combined by. Sum beside
  // average is kSum: the averaged mesh dims are a factor behind it.
  std::optional<ReduceOp> reduce_op;
  // What is sent: the tensor's dtype, or the one that terms are combined in.
  DType dtype = DType::kF32;
  // S or B of collective_cost.h, padding included: what the price is of.
  std::int64_t message_bytes = 0;
  std::int64_t bytes_per_rank = 0;  // the most any rank sends, with padding
  std::int64_t nanoseconds = 0;
  // An all_to_all in which every rank sends every other one a message of equal
  // size.
  bool padded = false;
  // Pieces that do not lie in a row in the tensor, or are cast, go through a
  // buffer: a pass over memory that the price holds.
  bool staged = false;

  friend bool operator==(const CollectiveStep&,
                         const CollectiveStep&) = default;
};

}  // namespace shardprop
