// This file defines functions of one tensor, and their gradients. A partial
// passes a function that is monotone and defined everywhere. It does not pass
// log and sqrt, because terms may be outside of their domain.

#include "ops/argument_reads.h"
#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/space/arithmetic.h"

#include <vector>

namespace shardprop {
namespace {

DType of_prelu(const OpCall& call, std::size_t) {
  require(call.first().rank() > 0, "the input is a scalar");
  return promoted_dtype(call);
}

DType of_celu(const OpCall& call, std::size_t) {
  require(call.op().float_arg("alpha").value_or(1) != 0, "`alpha` is 0");
  return call.first().dtype();
}

DType of_rrelu(const OpCall& call, std::size_t) {
  require(call.op().float_arg("lower").value_or(0) <=
              call.op().float_arg("upper").value_or(0),
          "`lower` lies above `upper`");
  return call.first().dtype();
}

// Extrema pass the function if its slopes are not negative, because it is then
// nondecreasing.
void rising_slopes_only(const OpCall& call, IndexSpace& space) {
  for (const char* slope :
       {"negative_slope", "alpha", "scale", "input_scale"}) {
    if (call.has(slope) && sign_of(call.op(), slope).value_or(-1) < 0) return;
  }
  for (const ReduceOp kind : {ReduceOp::kMax, ReduceOp::kMin}) {
    add_single_linearity(call, space, 0, kind, kind);
  }
}

// The replacement of a NaN is a number, so floats lose their order.
void in_order_without_floats(const OpCall& call, IndexSpace& space) {
  if (!is_floating(call.first().dtype())) nondecreasing_in_each(call, space);
}

// The function decreases for positive arguments. It is NaN otherwise, and an
// extremum preserves NaN.
void decreasing_where_positive(const OpCall& call, IndexSpace& space) {
  add_single_linearity(call, space, 0, ReduceOp::kMin, ReduceOp::kMax);
}

// The replacement of values below the threshold must not exceed the threshold.
void replaced_by_less(const OpCall& call, IndexSpace& space) {
  const auto threshold = call.op().float_arg("threshold");
  const auto value = call.op().float_arg("value");
  const bool is_less = threshold && value && *value <= *threshold;
  if (is_less && is_floating(call.first().dtype())) {
    nondecreasing_in_each(call, space);
  }
}

void define_values(Family& f) {
  f.add({"exp", "exp2", "expm1", "sigmoid", "tanh", "erf", "atan", "asinh",
         "sinh", "special_expit", "special_modified_bessel_i1"},
        pointwise().floating().nondecreasing());
  f.add({"erfc", "special_erfcx"}, pointwise().floating().nonincreasing());
  f.add({"log", "log2", "log10", "log1p", "sqrt", "rsqrt"},
        pointwise().floating().positive("self"));
  f.add({"sin", "cos", "tan", "asin", "acos", "cosh", "acosh", "atanh",
         "erfinv", "reciprocal", "lgamma", "digamma", "logit", "sinc", "i0",
         "polygamma", "polygamma_"},
        pointwise().floating());
  // The function sums over a dim of its own.
  f.add("mvlgamma", contiguous(pointwise()).floating());
  f.add({"deg2rad", "rad2deg"},
        pointwise().floating().linear_in("self").nondecreasing());
  f.add({"special_airy_ai",
         "special_bessel_j0",
         "special_bessel_j1",
         "special_bessel_y0",
         "special_bessel_y1",
         "special_chebyshev_polynomial_t",
         "special_chebyshev_polynomial_u",
         "special_chebyshev_polynomial_v",
         "special_chebyshev_polynomial_w",
         "special_entr",
         "special_hermite_polynomial_h",
         "special_hermite_polynomial_he",
         "special_i0e",
         "special_i1",
         "special_i1e",
         "special_laguerre_polynomial_l",
         "special_legendre_polynomial_p",
         "special_log_ndtr",
         "special_modified_bessel_i0",
         "special_ndtr",
         "special_ndtri",
         "special_polygamma",
         "special_shifted_chebyshev_polynomial_t",
         "special_shifted_chebyshev_polynomial_u",
         "special_shifted_chebyshev_polynomial_v",
         "special_shifted_chebyshev_polynomial_w",
         "special_spherical_bessel_j0"},
        pointwise().floating());
  f.add({"special_modified_bessel_k0", "special_modified_bessel_k1",
         "special_scaled_modified_bessel_k0",
         "special_scaled_modified_bessel_k1"},
        pointwise().floating().refine("decreasing_where_positive()"));
  f.add({"neg", "negative"},
        pointwise().typed("no_bools(first)").multilinear().nonincreasing());
  f.add({"conj_physical", "_conj_physical"}, pointwise().multilinear());
  f.add({"floor", "ceil", "round", "trunc", "relu", "relu6", "hardtanh",
         "hardsigmoid", "selu", "softshrink", "hardshrink", "log_sigmoid",
         "sign", "sgn"},
        pointwise().nondecreasing());
  f.add("nan_to_num", pointwise().refine("in_order_without_floats()"));
  f.add({"elu", "leaky_relu"}, pointwise().refine("rising_slopes_only()"));
  // softplus decreases at the point from which it is linear.
  f.add(
      {"frac", "bitwise_not", "gelu", "silu", "mish", "hardswish", "softplus"},
      pointwise());
  f.add("abs", pointwise().typed("real(first)"));
  f.add("angle", pointwise().typed("floating(real(first))"));
  f.add("prelu", with_channels("weight").typed("prelu()"));
  f.add("_prelu_kernel", pointwise().typed("same"));
  f.add("log_sigmoid_forward", same_shape(2));
  f.add("threshold", pointwise().refine("replaced_by_less()"));
  f.add("celu", pointwise().typed("celu()").refine("rising_slopes_only()"));
  f.add("rrelu", pointwise().typed("rrelu()"));
  f.add("heaviside", pointwise().typed("same"));
  f.add("frexp", pointwise(2).typed("first,i32"));
}

DType of_floats(const OpCall& call, std::size_t) {
  for (const TensorMeta& meta : call.op().inputs) {
    require(!counts(meta.dtype()), "an operand is of integers");
  }
  return promoted_dtype(call);
}

// In training the noise holds the slopes.
Dims strides_of_rrelu(const OpCall& call, const Dims&, DType dtype) {
  const char* other = call.boolean("training") ? "noise" : "self";
  std::vector<TensorMeta> operands = {call.tensor("grad_output"),
                                      call.tensor(other)};
  if (!call.boolean("training")) std::swap(operands[0], operands[1]);
  return elementwise(operands, dtype).strides();
}

void by_mode_of_rrelu(const OpCall& call, IndexSpace& space) {
  const bool is_trained = call.boolean("training");
  space.unread = {call.operand(is_trained ? "self" : "noise")};
  if (!is_trained) return;
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    add_single_linearity(call, space, call.operand("noise"), kind, kind);
  }
}

// Requires one dtype and one shape.
DType of_alike(const OpCall& call, std::size_t result) {
  for (const TensorMeta& meta : call.op().inputs) {
    if (meta.shape() != call.first().shape() ||
        meta.dtype() != call.first().dtype()) {
      call_not_stated("operands of several shapes or dtypes are not stated");
    }
  }
  return same_dtype(call, result);
}

// A gradient may be computed from the result of a function in place. A negative
// slope would hide the sign of the input, so it is rejected.
DType of_gradient(const OpCall& call, std::size_t) {
  for (const char* flag : {"self_is_result", "is_result"}) {
    if (!call.boolean_or(flag, false)) continue;
    const char* slope = call.has("alpha") ? "alpha" : "negative_slope";
    require(call.op().float_arg(slope).value_or(0) >= 0,
            "the slope is negative");
  }
  return promoted_dtype(call);
}

// Gradients of pointwise functions are linear in the incoming gradient.
void define_backwards(Family& f) {
  f.add({"tanh_backward", "sigmoid_backward", "silu_backward", "elu_backward",
         "hardtanh_backward", "hardswish_backward", "hardsigmoid_backward",
         "softplus_backward", "logit_backward", "log_sigmoid_backward",
         "softshrink_backward"},
        pointwise().typed("gradient_at()").linear_in("grad_output"));
  f.add("mish_backward", pointwise().of("self").linear_in("grad_output"));
  f.add("hardshrink_backward",
        pointwise().typed("gradient_at()").linear_in("grad_out"));
  f.add("rrelu_with_noise_backward", pointwise()
                                         .typed("alike_gradients()")
                                         .strided("rrelu")
                                         .linear_in("grad_output")
                                         .refine("by_mode_of_rrelu()"));
  f.add("_prelu_kernel_backward",
        pointwise(2)
            .typed("same")
            .elementwise({"self", "weight", "grad_output"})
            .linear_in("grad_output"));
  f.add("gelu_backward",
        pointwise().typed("floats()").linear_in("grad_output"));
  for (const char* name : {"threshold_backward", "leaky_relu_backward"}) {
    f.add(name, pointwise()
                    .typed("gradient_at()")
                    .elementwise({"self", "grad_output"})
                    .linear_in("grad_output"));
  }
  f.add("native_dropout_backward",
        pointwise().typed("floating(first)").linear_in("grad_output"));
}

}  // namespace

void words_of_pointwise_functions(RuleWords& words) {
  words.modifier("decreasing_where_positive()", decreasing_where_positive);
  words.modifier("in_order_without_floats()", in_order_without_floats);
  words.modifier("rising_slopes_only()", rising_slopes_only);
  words.modifier("replaced_by_less()", replaced_by_less);
  words.modifier("by_mode_of_rrelu()", by_mode_of_rrelu);
  words.dtype("prelu", of_prelu);
  words.dtype("celu", of_celu);
  words.dtype("rrelu", of_rrelu);
  words.dtype("gradient_at", of_gradient);
  words.dtype("alike_gradients", of_alike);
  words.strides("rrelu", strides_of_rrelu);
  words.dtype("floats", of_floats);
}

void define_pointwise_functions(Family f) {
  define_values(f);
  define_backwards(f);
}

}  // namespace shardprop
