// This file defines lookups of the positions of values among sorted values.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"
#include "ops/space/arithmetic.h"

#include <string>
#include <string_view>

namespace shardprop {
namespace {

// A position is the number of sorted values before a value, so counts of parts
// are terms of a sum. A sorter refers to positions in the full tensor.
constexpr std::string_view kAmongSorted =
    "if sorter: {s},...,{s}->... | s,...,s->... | "
    "if sorter: ...{s},...v,...{s}->...v | ...s,...v,...s->...v";
constexpr std::string_view kLoneAmongSorted = "if sorter: {s},{s}-> | s,s->";

// NaN sorts after all numbers, at the largest position, which a maximum
// preserves.
void in_order_of_values(const OpCall& call, IndexSpace& space) {
  const auto values = call.op().tensor_arg("self");
  if (!values) return;
  add_single_linearity(call, space, *values, ReduceOp::kMax, ReduceOp::kMax);
  if (is_floating(call.op().inputs[*values].dtype())) return;
  add_single_linearity(call, space, *values, ReduceOp::kMin, ReduceOp::kMin);
}

OpDefinition counted_before(OpDefinition row) {
  return std::move(row)
      .typed("if(out_int32,i32,i64)")
      .reduced_without(ReduceOp::kSum)
      .refine("in_order_of_values()");
}

// An element is among the test elements if it is among those of any rank.
Notation isin_notation(const OpCall& call) {
  const TensorMeta* elements =
      call.has("elements") ? call.optional_tensor("elements") : nullptr;
  const int rank = elements == nullptr ? 0 : elements->rank();
  const TensorMeta* test = call.has("test_elements")
                               ? call.optional_tensor("test_elements")
                               : nullptr;
  const Term own = dims_from(0, rank);
  Notation notation{{}, {own}, {}, {}};
  if (elements != nullptr) notation.inputs.push_back(own);
  if (test != nullptr) {
    notation.inputs.push_back(dims_from(rank, test->rank()));
  }
  return notation;
}

// The kernel receives the rank's part of the test elements as a vector.
constexpr std::string_view kIsin = R"(
test = reshape(test_elements, [-1])
return isin(default(elements, element), test, assume_unique=assume_unique, invert=invert))";

OpDefinition is_among() {
  return form("isin()").boolean().refine("among_parts()").per_rank(kIsin);
}

}  // namespace

void words_of_positions(RuleWords& words) {
  words.modifier("in_order_of_values()", in_order_of_values);
  words.form(mapped("isin()", isin_notation));
  words.modifier("among_parts()", [](const OpCall& call, IndexSpace& space) {
    adds_up(space, call.boolean("invert") ? ReduceOp::kBand : ReduceOp::kBor);
    for (std::size_t f = 0; f < space.factors.size(); ++f) {
      if (nth(space.outputs, 0).holds(static_cast<int>(f))) continue;
      space.factors[f].program = ProgramUse::kWhenSharded;
    }
  });
}

void define_positions(Family f) {
  f.add("searchsorted", counted_before(mapped(kAmongSorted)));
  f.add("searchsorted.Scalar", counted_before(mapped(kLoneAmongSorted)));
  f.add("bucketize.Tensor", counted_before(mapped("...,s->...")));
  f.add("bucketize.Scalar", counted_before(mapped("s->")));
  f.add("isin", in_order(is_among()));
}

}  // namespace shardprop
