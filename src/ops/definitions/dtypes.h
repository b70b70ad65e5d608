// Result dtypes that several families share.
#pragma once

#include "ops/op_call.h"
#include "ops/rules/type_rule.h"
#include "ops/schema/operand_name.h"

#include <cstddef>
#include <string>

namespace shardprop {

// The results are a value and its index: max.dim, sort, pooling.
inline DType value_and_index(const OpCall& call, std::size_t result) {
  return result == 0 ? call.first().dtype() : DType::kI64;
}

// Requires one dtype, and for prims one shape.
inline DType same_dtype(const OpCall& call, std::size_t) {
  const bool is_prim = call.op().function->ns() == "prims";
  const TensorMeta& first = call.first();
  for (std::size_t i = 1; i < call.op().inputs.size(); ++i) {
    const TensorMeta& meta = call.op().inputs[i];
    const bool is_alike = !is_prim || meta.rank() == 0 || first.rank() == 0 ||
                          meta.shape() == first.shape();
    if (meta.dtype() == first.dtype() && is_alike) continue;
    call_error('`' + operand_name(call.op(), i) + "` is " + to_string(meta) +
               ", expected " + (is_prim ? "the shape and " : "") +
               "the dtype of `" + operand_name(call.op(), 0) + "`, which is " +
               to_string(first));
  }
  return call.first().dtype();
}

}  // namespace shardprop
