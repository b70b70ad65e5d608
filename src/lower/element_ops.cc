#include "lower/element_ops.h"

#include <cmath>
#include <utility>

namespace shardprop::lowering {
namespace {

// Returns the bits of a float's significand, including the implicit bit.
int precision(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return 8;
    case DType::kF16:
      return 11;
    case DType::kF64:
      return 53;
    default:
      return 24;
  }
}

}  // namespace

ProgramValueId ElementOps::op(const char* name, DType dtype,
                              ProgramArguments args) {
  const Id made =
      build_.value(name_, *TensorMeta::contiguous(shape_, dtype), layout_);
  build_.op(name, std::move(args), {made});
  return made;
}

ProgramValueId ElementOps::scalar_op(const char* name, Id self, double other) {
  return op(name, build_[self].meta.dtype(),
            {{"self", self}, {"other", Argument(other)}});
}

ProgramValueId ElementOps::int_op(const char* name, Id self,
                                  std::int64_t other) {
  return op(name, DType::kI64, {{"self", self}, {"other", Argument(other)}});
}

ProgramValueId ElementOps::cast(Id value, DType dtype) {
  if (build_[value].meta.dtype() == dtype) return value;
  return op("aten._to_copy.default", dtype,
            {{"self", value}, {"dtype", Argument(dtype)}});
}

ProgramValueId ElementOps::bits(const Draws& draws, int word) {
  return op("shardprop.random_bits", DType::kI64,
            {{"seed", draws.seed},
             {"node", Argument(draws.node)},
             {"word", Argument(static_cast<std::int64_t>(word))}});
}

ProgramValueId ElementOps::uniform(const Draws& draws, DType dtype, int word) {
  const int digits = precision(dtype);
  constexpr const char* kShift = "aten.bitwise_right_shift.Tensor_Scalar";
  Id whole;
  if (digits <= 32) {
    whole = int_op(kShift, bits(draws, word), 32 - digits);
  } else {
    const Id high = int_op(kShift, bits(draws, word), 5);  // 27 and 26 bits
    const Id low = int_op(kShift, bits(draws, word + 1), 6);
    whole = op(
        "aten.add.Tensor", DType::kI64,
        {{"self", int_op("aten.mul.Scalar", high, 1 << 26)}, {"other", low}});
  }
  return scalar_op("aten.mul.Scalar", cast(whole, dtype),
                   std::ldexp(1.0, -digits));
}

ProgramValueId ElementOps::positive_uniform(const Draws& draws, DType dtype,
                                            int word) {
  // 1 - u
  return op("aten.rsub.Scalar", dtype,
            {{"self", uniform(draws, dtype, word)}, {"other", Argument(1.0)}});
}

}  // namespace shardprop::lowering
