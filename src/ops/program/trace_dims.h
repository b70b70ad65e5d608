// Dims of operands, and the parts of them that a rank has, as the functions of
// programs read them.
#pragma once

#include "ops/op_call.h"
#include "ops/program/trace_value.h"

#include <cstdint>
#include <string>

namespace shardprop {

// Unit: dims. The limit bounds the work of a call with a number from a text.
inline constexpr std::int64_t kMostDimsOfProgram = 64;

// Returns the size of a dim; a number counts as one element.
inline std::int64_t dim_size(const TensorMeta& meta, int dim) {
  return meta.rank() == 0 ? 1 : meta.size(dim);
}

// Returns the dim that a program names, counted from the front.
inline int wrapped(const TensorValue& x, const TraceValue& dim) {
  return wrap_dim(integer_of(dim), x.meta.rank());
}

// Returns the offset or the size of the rank's part of an input.
inline RankScalar of_the_rank(const std::string& name, const TensorValue& x,
                              const TraceValue& dim) {
  require(x.ref.step < 0, "only inputs have local sizes");
  const int d = wrapped(x, dim);
  return name == "offset" ? RankScalar::input_offset(x.ref.index, d)
                          : RankScalar::input_size(x.ref.index, d);
}

}  // namespace shardprop
