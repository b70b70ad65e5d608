#include "collective/reduction.h"

namespace shardprop::collective {
namespace {

bool is_wide_unsigned(DType dtype) {
  return dtype == DType::kU16 || dtype == DType::kU32 || dtype == DType::kU64;
}

}  // namespace

bool reduces(ReduceOp op, DType dtype) {
  if (!is_defined(op, dtype)) return false;
  const bool bitwise =
      op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
  switch (dtype) {
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0FNU:
    case DType::kC32:
      return false;
    case DType::kC64:
    case DType::kC128:
      return op == ReduceOp::kSum || op == ReduceOp::kAvg;
    default:
      // Wrapping sums and bitwise results are the same for signed numbers.
      return !is_wide_unsigned(dtype) || bitwise || op == ReduceOp::kSum ||
             op == ReduceOp::kProduct;
  }
}

}  // namespace shardprop::collective
