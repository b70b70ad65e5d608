// This file defines arithmetic and comparisons, element by element.

#include "ops/argument_reads.h"
#include "ops/arithmetic.h"
#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace shardprop {
namespace {

DType of_quotient(const OpCall& call, std::size_t) {
  const DType dtype = promoted_dtype(call);
  const bool rounds =
      call.has("rounding_mode") && call.op().string_arg("rounding_mode");
  return rounds ? dtype : to_floating(dtype);
}

bool is_bool(const OpCall& call, std::string_view arg) {
  if (!call.has(arg)) return false;
  const TensorMeta* tensor = call.optional_tensor(arg);
  return tensor != nullptr ? tensor->dtype() == DType::kBool
                           : std::holds_alternative<bool>(call.op().arg(arg));
}

// `alpha` scales the added operand; it is a number of the result's kind.
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

// Truth values cannot be subtracted.
DType of_difference(const OpCall& call, std::size_t result) {
  require(!is_bool(call, "self") && !is_bool(call, "other"),
          "truth values are subtracted");
  return of_signed_sum(call, result);
}

DType of_addcdiv(const OpCall& call, std::size_t) {
  require(!counts(call.tensor("tensor1").dtype()) ||
              !counts(call.tensor("tensor2").dtype()),
          "integers are divided");
  return to_floating(promoted_dtype(call));
}

// `value` is cast to the dtype of the tensors.
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

// Returns the dtype of a power with the integer 2; truth values become
// integers.
DType of_square(const OpCall& call, std::size_t) {
  const DType dtype = call.first().dtype();
  return dtype == DType::kBool ? DType::kI64 : dtype;
}

// fmax (fmin) ignores NaN. In P(max) (P(min)) of floats a NaN hides larger
// (smaller) terms, so this reduction passes only for integers. The opposite
// reduction passes for all dtypes, because a NaN then hides no needed term.
OpDefinition::Refine prefers_numbers(ReduceOp own) {
  return [own](const OpCall& call, IndexSpace& space) {
    const ReduceOp other = opposite(own);
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
        pointwise().typed(of_quotient).linear_in("self").nonzero("other"));
  f.add({"div", "divide"}, pointwise().typed(of_quotient).nonzero("other"));
  f.add({"remainder", "fmod", "floor_divide"},
        pointwise().promoted().nonzero("other"));
  f.add({"maximum", "max.other"},
        pointwise().promoted().lattice(ReduceOp::kMax).selects());
  f.add({"minimum", "min.other"},
        pointwise().promoted().lattice(ReduceOp::kMin).selects());
  f.add("square", pointwise().typed(of_square));
  f.add({"pow", "bitwise_and", "bitwise_or", "bitwise_xor",
         "bitwise_left_shift", "bitwise_right_shift", "__and__", "__or__",
         "__xor__", "__lshift__", "__rshift__", "lerp", "gcd", "lcm",
         "nextafter", "hypot", "igamma", "igammac"},
        pointwise().promoted());
  f.add("fmax", pointwise().promoted().refine("prefers_numbers(max)",
                                              prefers_numbers(ReduceOp::kMax)));
  f.add("fmin", pointwise().promoted().refine("prefers_numbers(min)",
                                              prefers_numbers(ReduceOp::kMin)));
  f.add({"logaddexp", "logaddexp2"},
        pointwise().promoted().refine("nondecreasing_in_each()",
                                      nondecreasing_in_each));
  f.add({"clamp", "clip"},
        pointwise()
            .typed(of_clamped)
            .refine("nondecreasing_in_each()", nondecreasing_in_each)
            .selects());
  f.add("clamp_min",
        pointwise().typed(of_clamped).lattice(ReduceOp::kMax).selects());
  f.add("clamp_max",
        pointwise().typed(of_clamped).lattice(ReduceOp::kMin).selects());
  f.add("addcmul", pointwise().typed(of_addcmul));
  f.add("addcdiv", pointwise().typed(of_addcdiv));
  f.add({"copysign", "ldexp", "atan2", "xlogy", "special_xlog1py",
         "special_zeta"},
        pointwise().floating());
  f.add("float_power", pointwise().typed([](const OpCall& call, std::size_t) {
    return is_complex(promoted_dtype(call)) ? DType::kC128 : DType::kF64;
  }));
}

void define_comparisons(Family& f) {
  f.add({"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
         "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "isposinf",
         "isneginf", "isreal", "signbit", "isclose"},
        pointwise().boolean());
}

bool computes_in_floats(std::string_view prim) {
  return prim == "exp2" || prim == "log2" || prim == "digamma" ||
         prim == "rsqrt" || prim == "reciprocal";
}

}  // namespace

void define_pointwise(Family f) {
  define_arithmetic(f);
  define_comparisons(f);
  for (const char* name :
       {"abs", "sign", "signbit", "trunc", "digamma", "exp2", "log2",
        "reciprocal", "rsqrt", "bitwise_not", "conj_physical", "fmax", "fmin",
        "hypot", "igamma", "igammac", "maximum", "minimum", "nextafter"}) {
    f.add("prims." + std::string(name),
          std::string_view(name) == "signbit" ? pointwise().boolean()
          : std::string_view(name) == "abs"   ? pointwise().typed("real(first)")
          : computes_in_floats(name)          ? pointwise().floating()
                                              : pointwise().typed(same_dtype));
  }
}

}  // namespace shardprop
