// Helpers that the forms and the definitions of lookups by index share.
#pragma once

#include "ops/forms/space_builder.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop {

inline bool is_index(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kI32;
}
inline bool is_mask(DType dtype) {
  return dtype == DType::kBool || dtype == DType::kU8;
}

// Lets the program shard these factors; each rank needs at least one element of
// each.
inline void cut_by_program(IndexSpace& space, const DimFactors& factors) {
  for (const FactorId id : factors) {
    space.factor(id).program = ProgramUse::kWhenSharded;
    space.factor(id).least = 1;
  }
}

// Lets the program shard a table. It shifts local indices, and index 0 must
// exist.
inline void look_up_by_program(IndexSpace& space, const DimFactors& factors) {
  cut_by_program(space, factors);
  for (const FactorId id : factors) {
    space.factor(id).kind = FactorKind::kIndexed;
  }
}

// Adds a factor for a dim of the first result that no operand has. The program
// lets each rank produce its own part of the dim.
inline void make_in_parts(const OpCall& call, IndexSpace& space, int dim,
                          std::string_view reason) {
  const std::int64_t size = size_of(nth(call.op().outputs, 0), dim);
  if (size <= 1) return;
  const int added = space.add_factor(size, 'z');
  nth(nth(space.outputs, 0).dims, index(dim)) = {static_cast<FactorId>(added)};
  Factor& factor = space.factor(added);
  factor.kind = FactorKind::kBlocked;
  factor.reason = reason;
  factor.program = ProgramUse::kWhenSharded;
  factor.least = 1;
  space.seal();
}

// `Write` says how a written value combines with the old one.
enum class Write : std::uint8_t {
  kReplace,
  kAdd,
  kMultiply,
  kMax,
  kMin,
  kMean
};

// Adds the partials that pass if elements of the first operand are written. The
// written values are operand `values`, or the argument `value`.
void pass_writes(const OpCall& call, IndexSpace& space, Write write,
                 std::optional<std::size_t> values);

// Returns whether one of the `indices` of x[i, j] is a mask. The dims that no
// index replaces then have the position that they have with integer indices.
bool is_indexed_by_mask(const OpCall& call);
BoundForm bind_index_by_mask(const OpCall& call);
// Binds x[mask] = values; `result` describes x.
BoundForm bind_put_by_mask(const OpCall& call, BoundResult result);

}  // namespace shardprop
