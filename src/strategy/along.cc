// Operators that run over one dim and treat every other alike: slices, cats,
// sorts, scans.

#include "strategy/rule_forms.h"

#include <shardprop/strategy/sharding_rule.h>

namespace shardprop {
namespace {

// A slice that takes everything changes nothing.
bool is_whole_slice(const OpSchema& op, int dim) {
  if (!op.has_arg("start") || !op.has_arg("end") || !op.has_arg("step")) {
    return false;
  }
  const std::int64_t size = op.inputs[0].size(dim);
  return op.int_arg("start").value_or(0) == 0 &&
         op.int_arg("end").value_or(size) >= size &&
         op.int_arg("step").value_or(1) == 1;
}

Result<FactorMap> instantiate_along(const OpSchema& op,
                                    const std::string& argument) {
  FactorMap map;
  const TensorMeta& first = op.inputs[0];
  const int rank = first.rank();
  int along = rank > 0 ? wrapped_dims(op, argument, rank).front() : -1;
  const int removed = along;
  if (along >= 0 && is_whole_slice(op, along)) along = -1;

  Operand whole;
  for (int dim = 0; dim < rank; ++dim) {
    DimFactors factors;
    if (dim != along && first.size(dim) != 1) {
      factors.push_back(static_cast<std::int8_t>(
          map.add_factor(first.size(dim), factor_letter(map.factors.size()))));
    }
    whole.dims.push_back(std::move(factors));
  }
  const auto operand_of = [&](const TensorMeta& meta) {
    Operand operand = whole;
    if (meta.rank() + 1 == rank && removed >= 0) {
      operand.dims.erase(operand.dims.begin() + removed);
    } else if (meta.rank() != rank) {
      // A legacy empty operand of cat: nothing of it is ever held.
      operand.dims.assign(static_cast<std::size_t>(meta.rank()), {});
    }
    return operand;
  };
  for (const TensorMeta& meta : op.inputs) {
    map.inputs.push_back(operand_of(meta));
  }
  for (const TensorMeta& meta : op.outputs) {
    map.outputs.push_back(operand_of(meta));
  }
  return map;
}

}  // namespace

ShardingRule along(std::string_view dim_argument) {
  return ShardingRule(
      "along(" + std::string(dim_argument) + ")",
      [argument = std::string(dim_argument)](const OpSchema& op) {
        return instantiate_along(op, argument);
      });
}

}  // namespace shardprop
