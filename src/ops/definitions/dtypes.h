// Result dtypes that several families share.
#pragma once

#include "ops/op_call.h"
#include "ops/rules/type_rule.h"

#include <cstddef>

namespace shardprop {

// The results are a value and its index: max.dim, sort, pooling.
inline DType value_and_index(const OpCall& call, std::size_t result) {
  return result == 0 ? call.first().dtype() : DType::kI64;
}

// Requires one dtype, and for prims one shape.
inline DType same_dtype(const OpCall& call, std::size_t) {
  const bool is_prim = call.op().function->ns() == "prims";
  for (const TensorMeta& meta : call.op().inputs) {
    require(meta.dtype() == call.first().dtype(),
            "the operands are of different dtypes");
    require(!is_prim || meta.rank() == 0 || call.first().rank() == 0 ||
                meta.shape() == call.first().shape(),
            "the operands are of different shapes");
  }
  return call.first().dtype();
}

}  // namespace shardprop
