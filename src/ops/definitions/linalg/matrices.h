// This header has helpers for definitions of operators on batches of matrices.
#pragma once

#include "ops/forms/mapped.h"

#include <cstdint>
#include <string_view>

namespace shardprop::linear_algebra {

// Returns the strides of LAPACK's matrices, which store the last two dims
// column by column.
Dims column_major(const OpCall& call, const Dims& shape, DType dtype);
// Returns the size of a dim of the first operand, counted from the end; 1 is
// the last dim.
std::int64_t from_end(const OpCall& call, int back);
// Returns the smaller side of a matrix.
std::int64_t side(const OpCall& call, const FactorName& letter);

// Splits a factor that kernels read in full units: the inner of the two new
// factors is one unit, and is blocked. The factor is blocked if its size is no multiple.
void keep_units(IndexSpace& space, FactorId id, std::int64_t unit);

// Results that are matrices are stored column by column, as by LAPACK.
OpDefinition matrices(std::string_view notation, std::string_view dtypes);
// Results are contiguous.
OpDefinition rows_first(std::string_view notation, std::string_view dtypes);

}  // namespace shardprop::linear_algebra
