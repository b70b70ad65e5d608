// This header has helpers for definitions of operators on batches of matrices.
#pragma once

#include "ops/definitions/linalg_work.h"
#include "ops/forms/mapped.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace shardprop::linear_algebra {

// Returns the strides of LAPACK's matrices, which store the last two dims
// column by column.
Dims column_major(const OpCall& call, const Dims& shape, DType dtype);
// Returns the size of a dim of the first operand, counted from the end; 1 is
// the last dim.
std::int64_t from_end(const OpCall& call, int back);
// Returns the size of a letter. k is the smaller side of a matrix; u and v are
// columns of U and rows of Vh.
std::int64_t side(const OpCall& call, const FactorName& letter);

// Applies mapped() and adds the floating point operations per matrix.
template <class... Parts>
OpDefinition counted(Parts&&... parts) {
  return mapped(std::forward<Parts>(parts)...)
      .refine("linalg_work()", count_linalg_work);
}
// Like counted(), with sizes by side() and results that LAPACK stores column by
// column.
OpDefinition matrices(std::string_view notation, std::string_view dtypes);
// Like matrices(), with contiguous results.
OpDefinition rows_first(std::string_view notation, std::string_view dtypes);

}  // namespace shardprop::linear_algebra
