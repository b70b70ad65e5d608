// This file defines operators that copy a tensor, or choose among tensors
// element by element.

#include "ops/argument_reads.h"
#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/space/arithmetic.h"

#include <optional>
#include <vector>

namespace shardprop {
namespace {

DType of_self_and_other(const OpCall& call, std::size_t) {
  const DType condition = call.tensor("condition").dtype();
  require(condition == DType::kBool || condition == DType::kU8,
          "the condition is not of truth values");
  constexpr std::string_view kBoth[] = {"self", "other"};
  return result_dtype(call, kBoth);
}

DType of_copy(const OpCall& call, std::size_t) {
  const TensorMeta& self = call.first();
  if (call.has("other")) return call.tensor("other").dtype();
  return call.dtype_or("dtype", self.dtype());
}

// Requires a tensor `value` to have rank 0.
void check_lone_value(const OpCall& call) {
  const TensorMeta* value =
      call.has("value") ? call.optional_tensor("value") : nullptr;
  require(value == nullptr || value->rank() == 0, "`value` is not a scalar");
}

DType of_masked(const OpCall& call, std::size_t) {
  require(call.tensor("mask").dtype() == DType::kBool,
          "the mask is not of truth values");
  check_lone_value(call);
  return call.tensor("self").dtype();
}

// The memory format may change in clone, _to_copy, to and contiguous.
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

// Each element is one of these tensors' elements, or one of a replicated
// operand. A reduction passes in one tensor alone if it preserves equal terms.
// A sum passes if the other values are zero.
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

// Returns the form of operators that copy, with the strides that `contiguous`
// and similar arguments specify.
OpDefinition copied() { return same_shape().typed("copy()").strided("copy"); }

// A cast is linear if it truncates no value. It preserves order unless it
// wraps.
void cast_linearities(const OpCall& call, IndexSpace& space) {
  for (const ReduceOp kind :
       {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin}) {
    add_single_linearity(call, space, 0, kind, kind);
  }
}

OpDefinition casting(OpDefinition form) {
  return std::move(form).refine("cast()").carries().selects();
}

OpDefinition cast() { return casting(copied()); }

}  // namespace

void words_of_copies(RuleWords& words) {
  words.check("scalar_value()", [](const OpCall& call, const IndexSpace&) {
    check_lone_value(call);
  });
  words.modifier("cast()", cast_linearities);
  words.modifier("chosen_extrema(self,other)",
                 [](const OpCall& call, IndexSpace& space) {
                   chosen_among(call, space, {"self", "other"});
                 });
  words.modifier("chosen_extrema(self,value)",
                 [](const OpCall& call, IndexSpace& space) {
                   chosen_among(call, space, {"self", "value"});
                 });
  words.dtype("copy", of_copy);
  words.strides("copy", strides_of_copy);
  words.dtype("self_and_other", of_self_and_other);
  words.dtype("masked", of_masked);
}

void define_copies(Family f) {
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
  for (const auto& [name, dtype] : kCasts) {
    f.add(name, casting(same_shape().typed(dtype).strided("copy")));
  }
  f.add("prims.convert_element_type", casting(pointwise().typed("copy()")));
  f.add("copy", pointwise_into("self").passes({"src"}));
  f.add("fill", pointwise_into("self")
                    .checked("scalar_value()")
                    .ignores_values({"self"}));
  f.add("zero", same_shape().like({"self"}).ignores_values());
  f.add({"where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar"},
        pointwise()
            .typed("self_and_other()")
            .passes({"self", "other"})
            .refine("chosen_extrema(self,other)"));
  f.add("masked_fill", contiguous(pointwise())
                           .typed("masked()")
                           .selects({"self", "value"})
                           .refine("chosen_extrema(self,value)"));
  f.add("positive",
        same_shape().typed("no_bools(first)").strided("first").passes().free());
}

}  // namespace shardprop
