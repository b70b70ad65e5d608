// Linearities of an index space, added where the dtypes allow them.
#pragma once

#include <shardprop/ops/index_space.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace shardprop {

class OpCall;

// Whether partials of `op` may be cast one by one, so that what they combine to
// is the cast of what they combined to before. Rounding of floats is ignored
// where the type gets no narrower.
//   cast_keeps(kSum, bf16, f32)   cast_keeps(kMax, i32, f32)
//   not: (kSum, f32, i32), (kSum, i32, i64), (kSum, bool, i64), (kMax, i32, u8)
bool cast_keeps(ReduceOp op, DType from, DType to);

// Adds the linearity if every partial of it is defined on its operand and
// survives the casts of the operator. Precondition: the call has its outputs.
void add_linearity(const OpCall& call, IndexSpace& space,
                   std::vector<std::optional<ReduceOp>> inputs,
                   std::vector<std::optional<ReduceOp>> outputs);
// One operand partial, the others whole.
void add_single_linearity(const OpCall& call, IndexSpace& space,
                          std::size_t input, ReduceOp in, ReduceOp out);
// Extrema of each operand, the others whole.
void nondecreasing_in_each(const OpCall& call, IndexSpace& space);

// kMin of kMax and the other way round. Precondition: one of the two.
inline ReduceOp opposite(ReduceOp extremum) {
  return extremum == ReduceOp::kMax ? ReduceOp::kMin : ReduceOp::kMax;
}

}  // namespace shardprop
