#include "ops/definitions/matrices.h"

#include <algorithm>
#include <string>

namespace shardprop::linear_algebra {
Dims column_major(const OpCall& call, const Dims& shape, DType dtype) {
  Dims strides = make_meta(shape, dtype).strides();
  const std::size_t rank = shape.size();
  if (static_cast<int>(rank) != call.first().rank() || rank < 2) return strides;
  strides[rank - 2] = 1;
  strides[rank - 1] = std::max<std::int64_t>(shape[rank - 2], 1);
  return strides;
}

std::int64_t from_end(const OpCall& call, int back) {
  const TensorMeta& self = call.first();
  require(self.rank() >= back, "the operand holds no matrices");
  return self.size(self.rank() - back);
}

std::int64_t side(const OpCall& call, const FactorName& letter) {
  const std::int64_t rows = from_end(call, 2);
  const std::int64_t columns = from_end(call, 1);
  const bool full = call.boolean_or("full_matrices", false) ||
                    (call.has("mode") &&
                     call.op().string_arg("mode").value_or("") == "complete");
  if (letter == 'u') return full ? rows : std::min(rows, columns);
  if (letter == 'v') return full ? columns : std::min(rows, columns);
  return std::min(rows, columns);
}

OpDefinition matrices(std::string_view notation, std::string_view dtypes) {
  return counted(notation, side).typed(dtypes).strided(column_major);
}
OpDefinition rows_first(std::string_view notation, std::string_view dtypes) {
  return counted(notation, side).typed(dtypes);
}

}  // namespace shardprop::linear_algebra
