// Pointwise operators. A partial passes a function that is monotone and defined
// everywhere; log and sqrt are not, for terms may lie outside their domain.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

namespace shardprop {
namespace {

DType real_of_first(const OpCall& call, std::size_t) {
  return real_dtype(call.first().dtype());
}

DType floating_of_first(const OpCall& call, std::size_t) {
  return to_floating(call.first().dtype());
}

DType of_self_and_other(const OpCall& call, std::size_t) {
  constexpr std::string_view kBoth[] = {"self", "other"};
  return result_dtype(call, kBoth);
}

DType of_quotient(const OpCall& call, std::size_t) {
  const DType dtype = promoted_dtype(call);
  const bool rounds =
      call.has("rounding_mode") && call.op().string_arg("rounding_mode");
  return rounds ? dtype : to_floating(dtype);
}

DType of_copy(const OpCall& call, std::size_t) {
  const TensorMeta& self = call.first();
  if (call.base_name() == "type_as" || call.overload() == "other") {
    return call.tensor("other").dtype();
  }
  return call.dtype_or("dtype", self.dtype());
}

// Memory format may change: clone, _to_copy, to, contiguous.
Dims strides_of_copy(const OpCall& call, const Dims& shape, DType dtype) {
  const TensorMeta& self = call.first();
  const std::string_view format = call.memory_format();
  if (format == "contiguous_format") return make_meta(shape, dtype).strides();
  if (format == "channels_last" || format == "channels_last_3d") {
    require(self.rank() == (format == "channels_last" ? 4 : 5),
            "channels_last needs a batch of images");
    return channels_last_strides(shape);
  }
  return is_dense(self) ? self.strides()
                        : dense_like(self, shape, dtype).strides();
}

// Strides of `contiguous` and what copies without a say in the matter.
OpDefinition copied() {
  return same_shape().typed(of_copy).strided(strides_of_copy);
}

// A cast is linear when nothing is cut off, and keeps order unless it wraps.
void cast_linearities(const OpCall& call, IndexSpace& space) {
  for (const ReduceOp kind :
       {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin}) {
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    inputs[0] = kind;
    add_linearity(call, space, std::move(inputs), {kind});
  }
}

OpDefinition cast() { return copied().refine("cast()", cast_linearities); }

DType of_frexp(const OpCall& call, std::size_t result) {
  return result == 0 ? call.first().dtype() : DType::kI32;
}

DType of_dropout(const OpCall& call, std::size_t result) {
  return result == 0 ? call.first().dtype() : DType::kBool;
}

void define_arithmetic(Family& f) {
  f.add("add", pointwise().promoted().additive());
  f.add("sub", pointwise().promoted().additive({1, -1}));
  f.add({"mul", "multiply"}, pointwise().promoted().multilinear());
  f.add({"div.Scalar", "div.Tensor", "true_divide", "divide.Scalar",
         "divide.Tensor"},
        pointwise().typed(of_quotient).linear_in("self"));
  f.add({"div", "divide"}, pointwise().typed(of_quotient));
  f.add({"maximum", "max.other"},
        pointwise().promoted().lattice(ReduceOp::kMax));
  f.add({"minimum", "min.other"},
        pointwise().promoted().lattice(ReduceOp::kMin));
  f.add({"rsub", "remainder", "fmod", "floor_divide", "pow", "bitwise_and",
         "bitwise_or", "bitwise_xor", "bitwise_left_shift",
         "bitwise_right_shift", "__and__", "__or__", "__xor__", "__lshift__",
         "__rshift__", "lerp", "square", "prelu", "subtract", "threshold",
         "heaviside", "fmin", "fmax", "gcd", "lcm", "nextafter", "hypot",
         "addcmul", "logaddexp", "logaddexp2", "igamma", "igammac"},
        pointwise().promoted());
  f.add({"clamp", "clip", "clamp_min", "clamp_max"},
        pointwise().promoted().nondecreasing());
  f.add({"addcdiv", "copysign", "ldexp", "atan2", "xlogy", "special_xlog1py",
         "special_zeta"},
        pointwise().floating());
  f.add("float_power", pointwise().typed([](const OpCall& call, std::size_t) {
    return is_complex(promoted_dtype(call)) ? DType::kC128 : DType::kF64;
  }));
}

void define_functions(Family& f) {
  f.add({"exp", "exp2", "expm1", "sigmoid", "tanh", "erf", "atan", "asinh",
         "sinh", "special_expit"},
        pointwise().floating().nondecreasing());
  f.add({"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan",
         "asin", "acos", "cosh", "acosh", "atanh", "erfc", "erfinv",
         "reciprocal", "lgamma", "digamma", "logit", "sinc", "i0", "polygamma",
         "mvlgamma", "polygamma_"},
        pointwise().floating());
  f.add({"deg2rad", "rad2deg"}, pointwise().floating().linear_in("self").nondecreasing());
  f.add({"special_airy_ai", "special_bessel_j0", "special_bessel_j1",
         "special_bessel_y0", "special_bessel_y1",
         "special_chebyshev_polynomial_t", "special_chebyshev_polynomial_u",
         "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w",
         "special_entr", "special_erfcx", "special_hermite_polynomial_h",
         "special_hermite_polynomial_he", "special_i0e", "special_i1",
         "special_i1e", "special_laguerre_polynomial_l",
         "special_legendre_polynomial_p", "special_log_ndtr",
         "special_modified_bessel_i0", "special_modified_bessel_i1",
         "special_modified_bessel_k0", "special_modified_bessel_k1",
         "special_ndtr", "special_ndtri", "special_polygamma", "special_scaled_modified_bessel_k0",
         "special_scaled_modified_bessel_k1",
         "special_shifted_chebyshev_polynomial_t",
         "special_shifted_chebyshev_polynomial_u",
         "special_shifted_chebyshev_polynomial_v",
         "special_shifted_chebyshev_polynomial_w",
         "special_spherical_bessel_j0"},
        pointwise().floating());
  f.add("neg", pointwise().multilinear().nonincreasing());
  f.add("negative", pointwise().multilinear().nonincreasing());
  f.add({"floor", "ceil", "round", "trunc", "relu", "relu6", "hardtanh",
         "hardsigmoid"},
        pointwise().nondecreasing());
  f.add({"sign", "sgn", "frac", "bitwise_not", "conj_physical",
         "_conj_physical", "gelu", "silu", "mish", "elu", "selu", "celu",
         "leaky_relu", "hardswish", "softshrink", "hardshrink", "nan_to_num",
         "log_sigmoid", "rrelu", "softplus"},
        pointwise());
  f.add({"abs", "angle"}, pointwise().typed([](const OpCall& call, std::size_t) {
    const DType dtype = real_dtype(call.first().dtype());
    return call.base_name() == "angle" ? to_floating(dtype) : dtype;
  }));
  f.add("frexp", pointwise(2).typed(of_frexp));
}

void define_comparisons(Family& f) {
  f.add({"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
         "logical_xor", "logical_not", "isnan", "isinf", "isfinite",
         "isposinf", "isneginf", "signbit", "isclose"},
        pointwise().boolean());
}

// Gradients of pointwise functions are linear in the gradient that comes in.
void define_backwards(Family& f) {
  f.add({"tanh_backward", "sigmoid_backward", "gelu_backward", "silu_backward",
         "threshold_backward", "elu_backward", "leaky_relu_backward",
         "hardtanh_backward", "hardswish_backward", "hardsigmoid_backward",
         "softplus_backward", "mish_backward", "logit_backward",
         "log_sigmoid_backward", "hardshrink_backward", "softshrink_backward"},
        pointwise().promoted().linear_in("grad_output"));
  f.add("native_dropout_backward",
        pointwise().typed(floating_of_first).linear_in("grad_output"));
}

void define_copies(Family& f) {
  f.add({"clone", "lift_fresh_copy"}, copied().passes({"self"}));
  f.add("contiguous", same_shape().passes());
  f.add("_to_copy", cast());
  f.add({"to", "type_as"}, cast());
  f.add("prims.convert_element_type",
        pointwise().typed(of_copy).refine("cast()", cast_linearities));
  f.add("copy", pointwise_into("self").passes({"src"}));
  f.add("fill", pointwise_into("self"));
  f.add("zero", same_shape().like("self").ignores_values());
  f.add("where", pointwise().typed(of_self_and_other).passes({"self", "other"}));
  f.add("masked_fill", pointwise().of("self"));
  f.add("positive", same_shape().strided([](const OpCall& call, const Dims&,
                                            DType) {
    return call.first().strides();
  }).passes().free());
}

bool computes_in_floats(std::string_view prim) {
  return prim == "exp2" || prim == "log2" || prim == "digamma" ||
         prim == "rsqrt" || prim == "reciprocal";
}

}  // namespace

void define_pointwise(Family f) {
  define_arithmetic(f);
  define_functions(f);
  define_comparisons(f);
  define_backwards(f);
  define_copies(f);
  f.add("native_dropout",
        same_shape(2).typed(of_dropout).like("input").random());
  f.add({"dropout", "feature_dropout", "alpha_dropout"},
        same_shape().like("input").random());
  f.add("bernoulli", same_shape().like("self").random());
  for (const char* name : {"abs", "sign", "signbit", "trunc", "digamma", "exp2",
                           "log2", "reciprocal", "rsqrt", "bitwise_not",
                           "conj_physical", "fmax", "fmin", "hypot", "igamma",
                           "igammac", "maximum", "minimum", "nextafter"}) {
    f.add("prims." + std::string(name),
          std::string_view(name) == "signbit" ? pointwise().boolean()
          : std::string_view(name) == "abs"
              ? pointwise().typed(real_of_first)
          : computes_in_floats(name) ? pointwise().floating()
                                     : pointwise().promoted());
  }
}

}  // namespace shardprop
