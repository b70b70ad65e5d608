// This file defines arithmetic and comparisons, element by element.

#include "ops/argument_reads.h"
#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/space/arithmetic.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace shardprop {
namespace {

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
      add_linearity(call, space, partials(operands.size(), own),
                    partials(space.outputs.size(), own));
    }
  };
}

constexpr std::string_view kQuotient =
    "stated(rounding_mode,promoted,floating(promoted))";
constexpr std::string_view kDifference =
    "not_bool(self,not_bool(other,scaled(alpha,promoted)))";

void define_arithmetic(Family& f) {
  f.add("add", pointwise().typed("scaled(alpha,promoted)").additive());
  f.add("sub", pointwise().typed(kDifference).additive({1, -1}));
  f.add("subtract", pointwise().typed(kDifference));
  f.add("rsub", pointwise()
                    .typed(kDifference)
                    .elementwise({"other", "self"})
                    .additive({-1, 1}));
  f.add({"mul", "multiply"}, pointwise().promoted().multilinear());
  f.add({"div.Scalar", "div.Tensor", "true_divide", "divide.Scalar",
         "divide.Tensor"},
        pointwise().typed(kQuotient).linear_in("self").nonzero("other"));
  f.add({"div", "divide"}, pointwise().typed(kQuotient).nonzero("other"));
  f.add({"remainder", "fmod", "floor_divide"},
        pointwise().promoted().nonzero("other"));
  f.add({"maximum", "max.other"},
        pointwise().promoted().lattice(ReduceOp::kMax).selects());
  f.add({"minimum", "min.other"},
        pointwise().promoted().lattice(ReduceOp::kMin).selects());
  f.add("square", pointwise().typed("square()"));
  f.add({"pow", "bitwise_and", "bitwise_or", "bitwise_xor",
         "bitwise_left_shift", "bitwise_right_shift", "__and__", "__or__",
         "__xor__", "__lshift__", "__rshift__", "lerp", "gcd", "lcm",
         "nextafter", "hypot", "igamma", "igammac"},
        pointwise().promoted());
  f.add("fmax", pointwise().promoted().refine("prefers_numbers(max)"));
  f.add("fmin", pointwise().promoted().refine("prefers_numbers(min)"));
  f.add({"logaddexp", "logaddexp2"},
        pointwise().promoted().nondecreasing_in_each());
  f.add({"clamp", "clip"}, pointwise()
                               .given_one({"min", "max"})
                               .promoted()
                               .nondecreasing_in_each()
                               .selects());
  f.add("clamp_min", pointwise()
                         .given_one({"min"})
                         .promoted()
                         .lattice(ReduceOp::kMax)
                         .selects());
  f.add("clamp_max", pointwise()
                         .given_one({"max"})
                         .promoted()
                         .lattice(ReduceOp::kMin)
                         .selects());
  f.add("addcmul", pointwise().typed("addcmul()"));
  f.add("addcdiv", pointwise().typed("addcdiv()"));
  f.add({"copysign", "ldexp", "atan2", "xlogy", "special_xlog1py",
         "special_zeta"},
        pointwise().floating());
  f.add("float_power", pointwise().typed("float_power()"));
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

void words_of_pointwise(RuleWords& words) {
  words.dtype("float_power", [](const OpCall& call, std::size_t) {
    return is_complex(promoted_dtype(call)) ? DType::kC128 : DType::kF64;
  });
  words.modifier("prefers_numbers(max)", prefers_numbers(ReduceOp::kMax));
  words.modifier("prefers_numbers(min)", prefers_numbers(ReduceOp::kMin));
  words.dtype("square", of_square);
  words.dtype("addcmul", of_addcmul);
  words.dtype("addcdiv", of_addcdiv);
}

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
                                     : pointwise().typed("same_as_prim()"));
  }
}

}  // namespace shardprop
