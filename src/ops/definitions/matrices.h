// Rows of operators on batches of matrices.
#pragma once

#include "ops/definitions/linalg_work.h"
#include "ops/forms/mapped.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace shardprop::linear_algebra {

// LAPACK's matrices: the last two dims column by column.
Dims column_major(const OpCall& call, const Dims& shape, DType dtype);
// The dtype of each result: `s`elf, `r`eal part, `c`omplex, `i`32.
OpDefinition::TypeOf types(std::string_view letters);
// The size of that dim of the first operand, 1 being the last.
std::int64_t from_end(const OpCall& call, int back);
// k: the smaller side of a matrix. u, v: columns of U and rows of Vh.
std::int64_t side(const OpCall& call, char letter);

// mapped(), with what is computed of each matrix.
template <class... Parts>
OpDefinition counted(Parts&&... parts) {
  return mapped(std::forward<Parts>(parts)...).refine("", count_linalg_work);
}
// The same with sizes by side(), and results as LAPACK has them.
OpDefinition matrices(std::string_view notation, std::string_view letters);
// The same with contiguous results.
OpDefinition rows_first(std::string_view notation, std::string_view letters);

}  // namespace shardprop::linear_algebra
