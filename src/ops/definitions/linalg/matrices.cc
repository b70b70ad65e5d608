#include "ops/definitions/linalg/matrices.h"

#include "ops/rules/fixed_notation.h"

#include <algorithm>
#include <utility>
#include <vector>

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

std::int64_t side(const OpCall& call, const FactorName&) {
  return std::min(from_end(call, 2), from_end(call, 1));
}

OpDefinition matrices(std::string_view notation, std::string_view dtypes) {
  std::vector<Notation> alternatives = fixed_notations(notation);
  for (Notation& one : alternatives) {
    for (Term& output : one.outputs) {
      if (output.dims.size() == one.inputs[0].dims.size()) {
        output.order = ResultOrder::kColumnMajor;
      }
    }
  }
  return mapped(std::move(alternatives)).typed(dtypes);
}
OpDefinition rows_first(std::string_view notation, std::string_view dtypes) {
  return mapped(notation).typed(dtypes);
}

}  // namespace shardprop::linear_algebra
