// Pointwise operators. A partial passes a function that is monotone and defined
// everywhere; log and sqrt are not, for terms may lie outside their domain.

#include "ops/argument_reads.h"
#include "ops/arithmetic.h"
#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace shardprop {
namespace {

DType real_of_first(const OpCall& call, std::size_t) {
  return real_dtype(call.first().dtype());
}

DType floating_of_first(const OpCall& call, std::size_t) {
  return to_floating(call.first().dtype());
}

DType of_self_and_other(const OpCall& call, std::size_t) {
  const DType condition = call.tensor("condition").dtype();
  require(condition == DType::kBool || condition == DType::kU8,
          "the condition is not of truth values");
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

bool is_bool(const OpCall& call, std::string_view arg) {
  if (!call.has(arg)) return false;
  const TensorMeta* tensor = call.optional_tensor(arg);
  return tensor != nullptr ? tensor->dtype() == DType::kBool
                           : std::holds_alternative<bool>(call.op().arg(arg));
}

// A tensor that stands for one number.
void check_lone_value(const OpCall& call) {
  const TensorMeta* value =
      call.has("value") ? call.optional_tensor("value") : nullptr;
  require(value == nullptr || value->rank() == 0, "`value` is not a scalar");
}
void lone_value(const OpCall& call, IndexSpace&) { check_lone_value(call); }

DType of_masked(const OpCall& call, std::size_t) {
  require(call.tensor("mask").dtype() == DType::kBool,
          "the mask is not of truth values");
  check_lone_value(call);
  return call.tensor("self").dtype();
}

// What is added is scaled by `alpha`, a number of the result's kind.
DType of_signed_sum(const OpCall& call, std::size_t) {
  const DType dtype = promoted_dtype(call);
  if (!call.has("alpha")) return dtype;
  const Argument& alpha = look_at(call.op(), "alpha", Look::kKind);
  require(!std::holds_alternative<bool>(alpha) || dtype == DType::kBool,
          "`alpha` is a truth value");
  require(!counts(dtype) || !std::holds_alternative<double>(alpha),
          "`alpha` is not an integer, as the operands are");
  return dtype;
}

// Truth values are not subtracted.
DType of_difference(const OpCall& call, std::size_t result) {
  require(!is_bool(call, "self") && !is_bool(call, "other"),
          "truth values are subtracted");
  return of_signed_sum(call, result);
}

DType of_negative(const OpCall& call, std::size_t) {
  require(call.first().dtype() != DType::kBool, "a truth value is negated");
  return call.first().dtype();
}

DType of_addcdiv(const OpCall& call, std::size_t) {
  require(!counts(call.tensor("tensor1").dtype()) ||
              !counts(call.tensor("tensor2").dtype()),
          "integers are divided");
  return to_floating(promoted_dtype(call));
}

// Its number is cast to the tensors' dtype.
DType of_addcmul(const OpCall& call, std::size_t) {
  constexpr std::string_view kTensors[] = {"self", "tensor1", "tensor2"};
  return result_dtype(call, kTensors);
}

DType of_clamped(const OpCall& call, std::size_t) {
  const auto given = [&](std::string_view arg) {
    return call.has(arg) &&
           !std::holds_alternative<NoneArg>(call.op().arg(arg));
  };
  require(given("min") || given("max"), "neither `min` nor `max` is given");
  return promoted_dtype(call);
}

DType of_floats(const OpCall& call, std::size_t) {
  for (const TensorMeta& meta : call.op().inputs) {
    require(!counts(meta.dtype()), "an operand is of integers");
  }
  return promoted_dtype(call);
}

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

// Trained, the noise stands for the slopes.
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

// One dtype, and with prims one shape.
DType of_all(const OpCall& call, std::size_t) {
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

// One dtype and one shape.
DType of_alike(const OpCall& call, std::size_t result) {
  for (const TensorMeta& meta : call.op().inputs) {
    if (meta.shape() != call.first().shape() ||
        meta.dtype() != call.first().dtype()) {
      call_not_stated("operands of several shapes or dtypes are not stated");
    }
  }
  return of_all(call, result);
}

// A gradient through a function that was computed in place, of which the sign
// is lost where the slope is negative.
DType of_gradient(const OpCall& call, std::size_t) {
  for (const char* flag : {"self_is_result", "is_result"}) {
    if (!call.boolean_or(flag, false)) continue;
    const char* slope = call.has("alpha") ? "alpha" : "negative_slope";
    require(call.op().float_arg(slope).value_or(0) >= 0,
            "the slope is negative");
  }
  return promoted_dtype(call);
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

// Extrema pass a function that rises wherever its slopes do.
void rising_slopes_only(const OpCall& call, IndexSpace& space) {
  for (const char* slope :
       {"negative_slope", "alpha", "scale", "input_scale"}) {
    if (call.has(slope) && sign_of(call.op(), slope).value_or(-1) < 0) return;
  }
  for (const ReduceOp kind : {ReduceOp::kMax, ReduceOp::kMin}) {
    add_single_linearity(call, space, 0, kind, kind);
  }
}

// Each element is one of these tensors or of what is whole: a reduction passes
// in one of them alone where it leaves equal terms as they are, a sum where the
// others are zero.
void chosen_among(const OpCall& call, IndexSpace& space,
                  std::initializer_list<std::string_view> arguments) {
  for (const std::string_view argument : arguments) {
    const auto input = call.op().tensor_arg(argument);
    if (!input) continue;
    bool others_vanish = true;
    for (const std::string_view other : arguments) {
      const bool is_tensor = call.op().tensor_arg(other).has_value();
      others_vanish =
          others_vanish &&
          (other == argument || (!is_tensor && sign_of(call.op(), other) == 0));
    }
    for (const ReduceOp kind : kAllReduceOps) {
      const bool passes =
          kind == ReduceOp::kSum
              ? others_vanish
              : kind != ReduceOp::kBxor && kind != ReduceOp::kProduct;
      if (passes) add_single_linearity(call, space, *input, kind, kind);
    }
  }
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

OpDefinition casting(OpDefinition form) {
  return std::move(form)
      .refine("cast()", cast_linearities)
      .carries()
      .refine("", selects());
}

OpDefinition cast() { return casting(copied()); }

DType of_frexp(const OpCall& call, std::size_t result) {
  return result == 0 ? call.first().dtype() : DType::kI32;
}

void check_probability(const OpCall& call) {
  if (!call.has("p")) return;
  const double p = call.op().float_arg("p").value_or(0);
  require(p >= 0 && p <= 1, "`p` is not a probability");
}

// A power with the integer 2: of truth values integers.
DType of_square(const OpCall& call, std::size_t) {
  const DType dtype = call.first().dtype();
  return dtype == DType::kBool ? DType::kI64 : dtype;
}

DType of_bernoulli(const OpCall& call, std::size_t) {
  check_probability(call);
  return call.first().dtype();
}

// Nothing is dropped, or scaled up, but in training.
DType of_dropout(const OpCall& call, std::size_t result) {
  require(!counts(call.first().dtype()) || !call.boolean_or("train", true) ||
              call.op().float_arg("p").value_or(0) == 0,
          "integers are scaled up");
  check_probability(call);
  return result == 0 ? call.first().dtype() : DType::kBool;
}

// In every operand, the others whole.
void nondecreasing_in_each(const OpCall& call, IndexSpace& space) {
  for (std::size_t i = 0; i < space.inputs.size(); ++i) {
    for (const ReduceOp kind : {ReduceOp::kMax, ReduceOp::kMin}) {
      add_single_linearity(call, space, i, kind, kind);
    }
  }
}

// The larger (smaller) of two, or the one that is a number: an extremum of floats
// that is none hides terms which would be larger (smaller), but none that would
// be smaller (larger).
OpDefinition::Refine prefers_numbers(ReduceOp own) {
  return [own](const OpCall& call, IndexSpace& space) {
    const ReduceOp other =
        own == ReduceOp::kMax ? ReduceOp::kMin : ReduceOp::kMax;
    const std::vector<TensorMeta>& operands = call.op().inputs;
    const auto has_numbers = [](const TensorMeta& operand) {
      return !is_floating(operand.dtype());
    };
    for (std::size_t i = 0; i < operands.size(); ++i) {
      add_single_linearity(call, space, i, other, other);
      if (has_numbers(operands[i])) {
        add_single_linearity(call, space, i, own, own);
      }
    }
    if (std::all_of(operands.begin(), operands.end(), has_numbers)) {
      const std::vector<std::optional<ReduceOp>> all(operands.size(), own);
      add_linearity(call, space, all, {own});
    }
  };
}

// What is given in place of what is not a number lies among the numbers.
void in_order_without_floats(const OpCall& call, IndexSpace& space) {
  if (!is_floating(call.first().dtype())) nondecreasing_in_each(call, space);
}

// Not a number elsewhere, which is what an extremum keeps.
void decreasing_where_positive(const OpCall& call, IndexSpace& space) {
  add_single_linearity(call, space, 0, ReduceOp::kMin, ReduceOp::kMax);
}

// What lies below the threshold becomes a number that is no larger.
void replaced_by_less(const OpCall& call, IndexSpace& space) {
  const auto threshold = call.op().float_arg("threshold");
  const auto value = call.op().float_arg("value");
  const bool is_less = threshold && value && *value <= *threshold;
  if (is_less && is_floating(call.first().dtype())) {
    nondecreasing_in_each(call, space);
  }
}

void define_arithmetic(Family& f) {
  f.add("add", pointwise().typed(of_signed_sum).additive());
  f.add("sub", pointwise().typed(of_difference).additive({1, -1}));
  f.add("subtract", pointwise().typed(of_difference));
  f.add("rsub", pointwise()
                    .typed(of_difference)
                    .elementwise({"other", "self"})
                    .additive({-1, 1}));
  f.add({"mul", "multiply"}, pointwise().promoted().multilinear());
  f.add({"div.Scalar", "div.Tensor", "true_divide", "divide.Scalar",
         "divide.Tensor"},
        pointwise()
            .typed(of_quotient)
            .linear_in("self")
            .refine("", nonzero("other")));
  f.add({"div", "divide"},
        pointwise().typed(of_quotient).refine("", nonzero("other")));
  f.add({"remainder", "fmod", "floor_divide"},
        pointwise().promoted().refine("", nonzero("other")));
  f.add({"maximum", "max.other"},
        pointwise().promoted().lattice(ReduceOp::kMax).refine("", selects()));
  f.add({"minimum", "min.other"},
        pointwise().promoted().lattice(ReduceOp::kMin).refine("", selects()));
  f.add("square", pointwise().typed(of_square));
  f.add({"pow", "bitwise_and", "bitwise_or", "bitwise_xor",
         "bitwise_left_shift", "bitwise_right_shift", "__and__", "__or__",
         "__xor__", "__lshift__", "__rshift__", "lerp", "gcd", "lcm",
         "nextafter", "hypot", "igamma", "igammac"},
        pointwise().promoted());
  f.add("fmax",
        pointwise().promoted().refine("", prefers_numbers(ReduceOp::kMax)));
  f.add("fmin",
        pointwise().promoted().refine("", prefers_numbers(ReduceOp::kMin)));
  f.add({"logaddexp", "logaddexp2"},
        pointwise().promoted().refine("", nondecreasing_in_each));
  f.add({"clamp", "clip"}, pointwise()
                               .typed(of_clamped)
                               .refine("", nondecreasing_in_each)
                               .refine("", selects()));
  f.add("clamp_min", pointwise()
                         .typed(of_clamped)
                         .lattice(ReduceOp::kMax)
                         .refine("", selects()));
  f.add("clamp_max", pointwise()
                         .typed(of_clamped)
                         .lattice(ReduceOp::kMin)
                         .refine("", selects()));
  f.add("addcmul", pointwise().typed(of_addcmul));
  f.add("addcdiv", pointwise().typed(of_addcdiv));
  f.add({"copysign", "ldexp", "atan2", "xlogy", "special_xlog1py",
         "special_zeta"},
        pointwise().floating());
  f.add("float_power", pointwise().typed([](const OpCall& call, std::size_t) {
    return is_complex(promoted_dtype(call)) ? DType::kC128 : DType::kF64;
  }));
}

void define_functions(Family& f) {
  f.add({"exp", "exp2", "expm1", "sigmoid", "tanh", "erf", "atan", "asinh",
         "sinh", "special_expit", "special_modified_bessel_i1"},
        pointwise().floating().nondecreasing());
  f.add({"erfc", "special_erfcx"}, pointwise().floating().nonincreasing());
  f.add({"log", "log2", "log10", "log1p", "sqrt", "rsqrt"},
        pointwise().floating().refine("", positive("self")));
  f.add({"sin", "cos", "tan", "asin", "acos", "cosh", "acosh", "atanh",
         "erfinv", "reciprocal", "lgamma", "digamma", "logit", "sinc", "i0",
         "polygamma", "polygamma_"},
        pointwise().floating());
  // A sum over a dim of its own.
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
        pointwise().floating().refine("", decreasing_where_positive));
  f.add({"neg", "negative"},
        pointwise().typed(of_negative).multilinear().nonincreasing());
  f.add({"conj_physical", "_conj_physical"}, pointwise().multilinear());
  f.add({"floor", "ceil", "round", "trunc", "relu", "relu6", "hardtanh",
         "hardsigmoid", "selu", "softshrink", "hardshrink", "log_sigmoid",
         "sign", "sgn"},
        pointwise().nondecreasing());
  f.add("nan_to_num", pointwise().refine("", in_order_without_floats));
  f.add({"elu", "leaky_relu"}, pointwise().refine("", rising_slopes_only));
  // softplus falls where it becomes a line.
  f.add(
      {"frac", "bitwise_not", "gelu", "silu", "mish", "hardswish", "softplus"},
      pointwise());
  f.add({"abs", "angle"},
        pointwise().typed([](const OpCall& call, std::size_t) {
          const DType dtype = real_dtype(call.first().dtype());
          return call.base_name() == "angle" ? to_floating(dtype) : dtype;
        }));
  f.add("prelu", with_channels("weight").typed(of_prelu));
  f.add("_prelu_kernel", pointwise().typed(of_all));
  f.add("log_sigmoid_forward", same_shape(2));
  f.add("threshold", pointwise().refine("", replaced_by_less));
  f.add("celu", pointwise().typed(of_celu).refine("", rising_slopes_only));
  f.add("rrelu", pointwise().typed(of_rrelu));
  f.add("heaviside", pointwise().typed(of_all));
  f.add("frexp", pointwise(2).typed(of_frexp));
}

void define_comparisons(Family& f) {
  f.add({"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
         "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "isposinf",
         "isneginf", "isreal", "signbit", "isclose"},
        pointwise().boolean());
}

// Gradients of pointwise functions are linear in the gradient that comes in.
void define_backwards(Family& f) {
  f.add({"tanh_backward", "sigmoid_backward", "silu_backward", "elu_backward",
         "hardtanh_backward", "hardswish_backward", "hardsigmoid_backward",
         "softplus_backward", "mish_backward", "logit_backward",
         "log_sigmoid_backward", "softshrink_backward"},
        pointwise().typed(of_gradient).linear_in("grad_output"));
  f.add("hardshrink_backward",
        pointwise().typed(of_gradient).linear_in("grad_out"));
  f.add("rrelu_with_noise_backward", pointwise()
                                         .typed(of_alike)
                                         .strided(strides_of_rrelu)
                                         .linear_in("grad_output")
                                         .refine("", by_mode_of_rrelu));
  f.add("_prelu_kernel_backward",
        pointwise(2)
            .typed(of_all)
            .elementwise({"self", "weight", "grad_output"})
            .linear_in("grad_output"));
  f.add("gelu_backward", pointwise().typed(of_floats).linear_in("grad_output"));
  for (const char* name : {"threshold_backward", "leaky_relu_backward"}) {
    f.add(name, pointwise()
                    .typed(of_gradient)
                    .elementwise({"self", "grad_output"})
                    .linear_in("grad_output"));
  }
  f.add("native_dropout_backward",
        pointwise().typed(floating_of_first).linear_in("grad_output"));
}

void define_copies(Family& f) {
  f.add("clone", copied().passes({"self"}));
  f.add("lift_fresh_copy", same_shape().passes({"self"}));
  f.add("contiguous", same_shape().passes().free_where_viewed());
  f.add("_to_copy", cast());
  f.add({"to", "type_as"}, cast().free_where_viewed());
  constexpr std::pair<std::string_view, DType> kCasts[] = {
      {"_cast_Byte", DType::kU8},   {"_cast_Char", DType::kI8},
      {"_cast_Short", DType::kI16}, {"_cast_Int", DType::kI32},
      {"_cast_Long", DType::kI64},  {"_cast_Half", DType::kF16},
      {"_cast_Float", DType::kF32}, {"_cast_Double", DType::kF64}};
  for (const auto& [name, dtype] : kCasts) f.add(name, cast().typed(dtype));
  f.add("prims.convert_element_type", casting(pointwise().typed(of_copy)));
  f.add("copy", pointwise_into("self").passes({"src"}));
  f.add("fill",
        pointwise_into("self").refine("", lone_value).ignores_values({"self"}));
  f.add("zero", same_shape().like("self").ignores_values());
  f.add({"where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar"},
        pointwise()
            .typed(of_self_and_other)
            .passes({"self", "other"})
            .refine("", [](const OpCall& call, IndexSpace& space) {
              chosen_among(call, space, {"self", "other"});
            }));
  f.add("masked_fill",
        contiguous(pointwise())
            .typed(of_masked)
            .refine("", selects({"self", "value"}))
            .refine("", [](const OpCall& call, IndexSpace& space) {
              chosen_among(call, space, {"self", "value"});
            }));
  f.add("positive", same_shape()
                        .typed(of_negative)
                        .strided([](const OpCall& call, const Dims&, DType) {
                          return call.first().strides();
                        })
                        .passes()
                        .free());
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
  f.add("native_dropout", same_shape(2)
                              .typed(of_dropout)
                              .like("input")
                              .random()
                              .refine("", draws(Distribution::kDropout)));
  constexpr std::pair<std::string_view, Distribution> kDropouts[] = {
      {"dropout", Distribution::kDropout},
      {"feature_dropout", Distribution::kFeatureDropout},
      {"alpha_dropout", Distribution::kAlphaDropout},
      {"feature_alpha_dropout", Distribution::kFeatureAlphaDropout}};
  for (const auto& [name, how] : kDropouts) {
    f.add(name, same_shape()
                    .typed(of_dropout)
                    .like("input")
                    .random()
                    .refine("", draws(how)));
  }
  f.add("bernoulli", same_shape()
                         .typed(of_bernoulli)
                         .random()
                         .refine("", draws(Distribution::kBernoulli)));
  f.add("bernoulli.p", same_shape()
                           .typed(of_bernoulli)
                           .random()
                           .refine("", draws(Distribution::kBernoulli)));
  for (const char* name :
       {"abs", "sign", "signbit", "trunc", "digamma", "exp2", "log2",
        "reciprocal", "rsqrt", "bitwise_not", "conj_physical", "fmax", "fmin",
        "hypot", "igamma", "igammac", "maximum", "minimum", "nextafter"}) {
    f.add("prims." + std::string(name),
          std::string_view(name) == "signbit" ? pointwise().boolean()
          : std::string_view(name) == "abs"   ? pointwise().typed(real_of_first)
          : computes_in_floats(name)          ? pointwise().floating()
                                              : pointwise().typed(of_all));
  }
}

}  // namespace shardprop
