#include "ops/shape_context.h"

namespace shardprop {
namespace {

// All tensor operands, broadcast; `dtype` as the rule found it.
Results pointwise(const ShapeContext& op, DType dtype) {
  require(!op.op().inputs.empty(), "no operand is a tensor");
  return one(elementwise(op.op().inputs, dtype));
}

constexpr std::string_view kOperands[] = {
    "self", "other", "exponent", "input", "end", "min", "max", "weight"};
constexpr std::string_view kSelfAndOther[] = {"self", "other"};

Results promoted(const ShapeContext& op) {
  return pointwise(op, result_dtype(op, kOperands));
}

Results promoted_to_floating(const ShapeContext& op) {
  return pointwise(op, to_floating(result_dtype(op, kOperands)));
}

Results boolean(const ShapeContext& op) { return pointwise(op, DType::kBool); }

// The first operand's dtype, whatever the others are.
Results first_dtype(const ShapeContext& op) {
  require(!op.op().inputs.empty(), "no operand is a tensor");
  return pointwise(op, op.op().inputs.front().dtype());
}

// Backwards and ternary operators: every tensor has a say.
Results all_promoted(const ShapeContext& op) {
  require(!op.op().inputs.empty(), "no operand is a tensor");
  DType dtype = op.op().inputs.front().dtype();
  for (const TensorMeta& input : op.op().inputs) {
    dtype = promote_types(dtype, input.dtype());
  }
  return pointwise(op, dtype);
}

Results absolute(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  switch (self.dtype()) {
    case DType::kC32:
      return pointwise(op, DType::kF16);
    case DType::kC64:
      return pointwise(op, DType::kF32);
    case DType::kC128:
      return pointwise(op, DType::kF64);
    default:
      return pointwise(op, self.dtype());
  }
}

Results divide(const ShapeContext& op) {
  const DType dtype = result_dtype(op, kOperands);
  const bool rounds =
      op.has("rounding_mode") && op.op().string_arg("rounding_mode");
  return pointwise(op, rounds ? dtype : to_floating(dtype));
}

Results where(const ShapeContext& op) {
  if (!op.has("self")) shape_error("where without operands has no fixed shape");
  return pointwise(op, result_dtype(op, kSelfAndOther));
}

// The result keeps self's shape; the other operand broadcasts into it.
Results into_self(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  for (const TensorMeta& input : op.op().inputs) {
    require(broadcast(self.shape(), input.shape()) == self.shape(),
            "an operand does not broadcast into the first");
  }
  return one(dense_like(self, self.shape(), self.dtype()));
}

// copy(self, src): self overwritten, in the place it has.
Results copied_into(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(broadcast(self.shape(), op.tensor("src").shape()) == self.shape(),
          "the source does not broadcast into the first operand");
  return one(self);
}

// clone, _to_copy, to, contiguous: memory format and dtype may change.
Results copied(const ShapeContext& op) {
  const TensorMeta& self =
      op.has("self") ? op.tensor("self") : op.tensor("input");
  DType dtype = op.dtype_or("dtype", self.dtype());
  if (op.base_name() == "contiguous") dtype = self.dtype();
  if (op.base_name() == "type_as" || op.overload() == "other") {
    dtype = op.tensor("other").dtype();
  }
  const std::string_view format = op.memory_format();
  if (format == "contiguous_format") return one(make_meta(self.shape(), dtype));
  if (format == "channels_last" || format == "channels_last_3d") {
    const int rank = format == "channels_last" ? 4 : 5;
    require(self.rank() == rank, "channels_last needs a batch of images");
    return one(
        make_meta(self.shape(), channels_last_strides(self.shape()), dtype));
  }
  if (is_dense(self)) return one(with_dtype(self, dtype));
  return one(dense_like(self, self.shape(), dtype));
}

Results dropout(const ShapeContext& op) {
  const TensorMeta& input = op.tensor("input");
  Results results = one(dense_like(input, input.shape(), input.dtype()));
  results.emplace_back(dense_like(input, input.shape(), DType::kBool));
  return results;
}

}  // namespace

void add_pointwise_shapes(ShapeTable& table) {
  for (const char* name : {"aten.add",
                           "aten.sub",
                           "aten.rsub",
                           "aten.mul",
                           "aten.minimum",
                           "aten.maximum",
                           "aten.fmin",
                           "aten.fmax",
                           "aten.remainder",
                           "aten.fmod",
                           "aten.floor_divide",
                           "aten.pow",
                           "aten.bitwise_and",
                           "aten.bitwise_or",
                           "aten.bitwise_xor",
                           "aten.bitwise_left_shift",
                           "aten.bitwise_right_shift",
                           "aten.__and__",
                           "aten.__or__",
                           "aten.__xor__",
                           "aten.__lshift__",
                           "aten.__rshift__",
                           "aten.clamp",
                           "aten.clamp_min",
                           "aten.clamp_max",
                           "aten.clip",
                           "aten.lerp",
                           "aten.square",
                           "aten.prelu",
                           "aten.multiply",
                           "aten.subtract",
                           "aten.threshold",
                           "aten.heaviside",
                           "aten.copysign"}) {
    table[name] = promoted;
  }
  for (const char* name :
       {"aten.exp",         "aten.exp2",    "aten.expm1",
        "aten.log",         "aten.log2",    "aten.log10",
        "aten.log1p",       "aten.sqrt",    "aten.rsqrt",
        "aten.sin",         "aten.cos",     "aten.tan",
        "aten.asin",        "aten.acos",    "aten.atan",
        "aten.sinh",        "aten.cosh",    "aten.tanh",
        "aten.asinh",       "aten.acosh",   "aten.atanh",
        "aten.atan2",       "aten.sigmoid", "aten.erf",
        "aten.erfc",        "aten.erfinv",  "aten.reciprocal",
        "aten.lgamma",      "aten.digamma", "aten.log_sigmoid",
        "aten.logit",       "aten.sinc",    "aten.special_expit",
        "aten.true_divide", "aten.xlogy"}) {
    table[name] = promoted_to_floating;
  }
  for (const char* name : {"aten.neg",
                           "aten.relu",
                           "aten.relu6",
                           "aten.sign",
                           "aten.sgn",
                           "aten.floor",
                           "aten.ceil",
                           "aten.round",
                           "aten.trunc",
                           "aten.frac",
                           "aten.bitwise_not",
                           "aten.conj_physical",
                           "aten.positive",
                           "aten.gelu",
                           "aten.silu",
                           "aten.mish",
                           "aten.elu",
                           "aten.selu",
                           "aten.celu",
                           "aten.leaky_relu",
                           "aten.hardtanh",
                           "aten.hardswish",
                           "aten.hardsigmoid",
                           "aten.softplus",
                           "aten.softshrink",
                           "aten.hardshrink",
                           "aten.nan_to_num",
                           "aten.dropout",
                           "aten.feature_dropout",
                           "aten.alpha_dropout",
                           "aten.bernoulli",
                           "aten.negative"}) {
    table[name] = first_dtype;
  }
  for (const char* name :
       {"aten.eq", "aten.ne", "aten.lt", "aten.le", "aten.gt", "aten.ge",
        "aten.logical_and", "aten.logical_or", "aten.logical_xor",
        "aten.logical_not", "aten.isnan", "aten.isinf", "aten.isfinite",
        "aten.isposinf", "aten.isneginf", "aten.signbit", "aten.isclose"}) {
    table[name] = boolean;
  }
  for (const char* name :
       {"aten.addcmul", "aten.addcdiv", "aten.tanh_backward",
        "aten.sigmoid_backward", "aten.gelu_backward", "aten.silu_backward",
        "aten.threshold_backward", "aten.elu_backward",
        "aten.leaky_relu_backward", "aten.hardtanh_backward",
        "aten.hardswish_backward", "aten.hardsigmoid_backward",
        "aten.softplus_backward", "aten.mish_backward"}) {
    table[name] = all_promoted;
  }
  // grad_output, mask: the mask is boolean.
  table["aten.native_dropout_backward"] = first_dtype;
  table["aten.native_dropout"] = dropout;
  table["aten.abs"] = absolute;
  table["aten.div"] = divide;
  table["aten.divide"] = divide;
  table["aten.where"] = where;
  table["aten.masked_fill"] = first_dtype;
  table["aten.copy"] = copied_into;
  for (const char* name : {"aten.fill", "aten.zero", "aten.masked_scatter"}) {
    table[name] = into_self;
  }
  for (const char* name :
       {"aten.clone", "aten._to_copy", "aten.to", "aten.contiguous",
        "aten.type_as", "aten.lift_fresh_copy"}) {
    table[name] = copied;
  }
}

}  // namespace shardprop
