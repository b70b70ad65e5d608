#include "ops/definitions/linalg/matrices.h"

#include "ops/rules/fixed_notation.h"

#include <algorithm>
#include <string>
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
  return size_of(self, self.rank() - back);
}

std::int64_t side(const OpCall& call, const FactorName&) {
  return std::min(from_end(call, 2), from_end(call, 1));
}

void keep_units(IndexSpace& space, FactorId id, std::int64_t unit) {
  const std::string reason =
      "the kernel takes it in units of " + std::to_string(unit);
  const std::int64_t size = space.factor(id).size;
  if (unit == 1 || !space.factor(id).shardable()) return;
  if (size % unit != 0) {
    space.factor(id).kind = FactorKind::kBlocked;
    space.factor(id).program = ProgramUse::kNever;
    space.factor(id).reason = reason;
    return;
  }
  const auto inner = static_cast<FactorId>(space.add_factor(unit));
  space.factor(inner).kind = FactorKind::kBlocked;
  space.factor(inner).reason = reason;
  space.factor(id).size = size / unit;
  const auto split = [&](std::vector<Operand>& operands) {
    for (Operand& operand : operands) {
      for (DimFactors& dim : operand.dims) {
        DimFactors now;
        for (const FactorId factor : dim) {
          now.push_back(factor);
          if (factor == id) now.push_back(inner);
        }
        dim = std::move(now);
      }
    }
  };
  split(space.inputs);
  split(space.outputs);
  space.seal();
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
