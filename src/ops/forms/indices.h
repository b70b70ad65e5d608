// What the forms and the rows of lookups by index share.
#pragma once

#include "ops/forms/space_builder.h"

namespace shardprop {

inline bool is_index(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kI32;
}
inline bool is_mask(DType dtype) {
  return dtype == DType::kBool || dtype == DType::kU8;
}

// A table is sharded by its program: local indices are shifted, and index 0
// must exist.
inline void look_up_by_program(IndexSpace& space, const DimFactors& factors) {
  for (const FactorId id : factors) {
    space.factor(id).kind = FactorKind::kIndexed;
    space.factor(id).program = ProgramUse::kWhenSharded;
    space.factor(id).least = 1;
  }
}

// Whether one of the `indices` of x[i, j] is a mask. The dims that no index takes
// the place of then stand where they do beside indices of integers.
bool is_indexed_by_mask(const OpCall& call);
BoundForm bind_index_by_mask(const OpCall& call);

}  // namespace shardprop
