// Functions that add linearities to an index space if the dtypes allow them.
#pragma once

#include <shardprop/ops/index_space.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace shardprop {

class OpCall;

// Returns whether partials of `op` may be cast one by one: the reduction of the
// casts equals the cast of the reduction. Rounding of floats is ignored if the
// dtype does not become narrower.
//   cast_keeps(kSum, bf16, f32)   cast_keeps(kMax, i32, f32)
//   not: (kSum, f32, i32), (kSum, i32, i64), (kSum, bool, i64), (kMax, i32, u8)
bool cast_keeps(ReduceOp op, DType from, DType to);

// The reductions by operand that a linearity lists.
using Partials = std::vector<std::optional<ReduceOp>>;
// Returns the reduction for each of `count` operands.
Partials partials(std::size_t count, ReduceOp op);

// Adds the linearity if every partial of it is defined on its operand and
// survives the casts of the operator. Precondition: the call has its outputs.
// Error: CallError if the lists do not have an entry per operand and per result.
void add_linearity(const OpCall& call, IndexSpace& space, Partials inputs,
                   Partials outputs);
// Adds a linearity in one operand; the others are replicated.
void add_single_linearity(const OpCall& call, IndexSpace& space,
                          std::size_t input, ReduceOp in, ReduceOp out);
// Adds P(max) and P(min) of each operand alone; the others are replicated.
void nondecreasing_in_each(const OpCall& call, IndexSpace& space);

// Returns kMin for kMax and kMax for kMin. Precondition: `extremum` is one of
// the two.
inline ReduceOp opposite(ReduceOp extremum) {
  return extremum == ReduceOp::kMax ? ReduceOp::kMin : ReduceOp::kMax;
}

}  // namespace shardprop
