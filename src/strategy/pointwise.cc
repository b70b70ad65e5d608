// Pointwise operators, and the factories and reductions that are close to them.

#include "base/try.h"
#include "strategy/rule_forms.h"

#include <shardprop/strategy/sharding_rule.h>

#include <algorithm>

namespace shardprop {
namespace {

// A factor per dim of `meta`; none for a dim of size 1.
Operand factors_of_dims(FactorMap& map, const TensorMeta& meta) {
  Operand operand;
  for (int dim = 0; dim < meta.rank(); ++dim) {
    DimFactors factors;
    if (meta.size(dim) != 1) {
      factors.push_back(static_cast<std::int8_t>(
          map.add_factor(meta.size(dim), factor_letter(map.factors.size()))));
    }
    operand.dims.push_back(std::move(factors));
  }
  return operand;
}

// Aligned on the right with `whole`; dims of another size are broadcast.
Operand aligned(const FactorMap& map, const Operand& whole,
                const TensorMeta& meta) {
  Operand operand;
  operand.dims.resize(static_cast<std::size_t>(meta.rank()));
  for (std::size_t back = 1; back <= operand.dims.size(); ++back) {
    if (back > whole.dims.size()) break;
    const DimFactors& factors = whole.dims[whole.dims.size() - back];
    const std::size_t dim = operand.dims.size() - back;
    if (factors.size() == 1 &&
        map.factors[static_cast<std::size_t>(factors[0])].size ==
            meta.size(static_cast<int>(dim))) {
      operand.dims[dim] = factors;
    }
  }
  return operand;
}

Result<FactorMap> instantiate_pointwise(const OpSchema& op) {
  FactorMap map;
  if (op.outputs.empty()) {
    for (const TensorMeta& meta : op.inputs) {
      map.inputs.emplace_back().dims.resize(
          static_cast<std::size_t>(meta.rank()));
    }
    return map;
  }
  const Operand whole = factors_of_dims(map, op.outputs[0]);
  for (const TensorMeta& meta : op.inputs) {
    map.inputs.push_back(aligned(map, whole, meta));
  }
  for (const TensorMeta& meta : op.outputs) {
    map.outputs.push_back(aligned(map, whole, meta));
  }
  return map;
}

Result<FactorMap> instantiate_reduction(const OpSchema& op, ReduceOp reduce,
                                        const std::string& dims_argument,
                                        const std::string& keepdim_argument) {
  FactorMap map;
  if (op.inputs.size() != 1 || op.outputs.size() != 1) {
    return fail(ErrorCode::kNoStrategy,
                op.name() + " has other operands than its rule states");
  }
  const int rank = op.inputs[0].rank();
  map.inputs.push_back(factors_of_dims(map, op.inputs[0]));
  const std::vector<int> dims = wrapped_dims(op, dims_argument, rank);
  const bool keepdim = op.has_arg(keepdim_argument) &&
                       op.bool_arg(keepdim_argument).value_or(false);
  Operand& output = map.outputs.emplace_back();
  map.seal();
  for (int dim = 0; dim < rank; ++dim) {
    const DimFactors& factors =
        map.inputs[0].dims[static_cast<std::size_t>(dim)];
    if (std::find(dims.begin(), dims.end(), dim) == dims.end()) {
      output.dims.push_back(factors);
      continue;
    }
    if (keepdim) output.dims.emplace_back();
    for (const std::int8_t factor : factors) {
      map.outputs_without[0][static_cast<std::size_t>(factor)] =
          Placement::partial(reduce);
    }
  }
  for (const ReduceOp kind : kAllReduceOps) {
    // Sums and averages are linear, but for truth values, whose own sum is
    // another; the others commute with themselves.
    const bool linear = reduce == ReduceOp::kSum || reduce == ReduceOp::kAvg;
    const bool carried =
        linear ? (kind == ReduceOp::kSum || kind == ReduceOp::kAvg) &&
                     op.inputs[0].dtype() != DType::kBool
               : kind == reduce;
    if (!carried || !is_defined(kind, op.inputs[0].dtype()) ||
        !is_defined(kind, op.outputs[0].dtype())) {
      continue;
    }
    map.carries.push_back(
        {{Placement::partial(kind)}, {Placement::partial(kind)}});
  }
  return map;
}

}  // namespace

ShardingRule pointwise() {
  return ShardingRule("pointwise()", instantiate_pointwise);
}

ShardingRule factory(std::string_view shape_argument) {
  return ShardingRule("factory(" + std::string(shape_argument) + ")",
                      instantiate_pointwise)
      .local_shape(shape_argument);
}

ShardingRule reduction(ReduceOp op, std::string_view dims,
                       std::string_view keepdim) {
  const std::string text = "reduction(" + std::string(to_string(op)) + ")";
  return ShardingRule(text,
                      [op, dims = std::string(dims),
                       keepdim = std::string(keepdim)](const OpSchema& schema) {
                        return instantiate_reduction(schema, op, dims, keepdim);
                      });
}

}  // namespace shardprop
