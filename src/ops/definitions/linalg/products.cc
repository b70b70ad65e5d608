// This file defines products of groups: rows of one operand belong to matrices of the
// other, such as tokens of experts.

#include "ops/definitions/families.h"
#include "ops/definitions/linalg/matrices.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"
#include "ops/forms/space_builder.h"
#include "ops/rules/fixed_notation.h"

#include <algorithm>

namespace shardprop {
namespace {

using linear_algebra::keep_units;

// --- groups: rows of one operand belong to matrices of the other ---

// Returns the number of elements in 16 bytes.
std::int64_t aligned_elements(DType dtype) {
  return std::max<std::int64_t>(
      16 / static_cast<std::int64_t>(item_size(dtype)), 1);
}

// Rows of both operands start at multiples of 16 bytes.
void keep_aligned(const OpCall& call, IndexSpace& space) {
  for (std::size_t i = 0; i < 2; ++i) {
    const TensorMeta& meta = nth(call.op().inputs, i);
    for (int d = std::max(meta.rank() - 2, 0); d < meta.rank(); ++d) {
      if (meta.strides()[index(d)] != 1) continue;
      for (const FactorId id : dim_of(space.inputs, i, index(d))) {
        keep_units(space, id, aligned_elements(meta.dtype()));
      }
    }
  }
}

// The tokens are sorted by experts; every rank knows the end of each expert's
// tokens.
constexpr char kExperts[] = "[t]k,[g]kn,[z]->[t]n";

constexpr std::string_view kGrouped =
    "gmk,gkn->gmn | [t]k,[g]kn,[z]->[t]n | [g]mk,k[n],[g]->m[n] | "
    "m[k],[k]n,[g]->[g]mn";

// Rows start at multiples of 16 bytes.
Dims grouped_strides(const OpCall&, const Dims& shape, DType dtype) {
  Dims strides = make_meta(shape, dtype).strides();
  const std::int64_t unit = aligned_elements(dtype);
  const std::size_t rank = shape.size();
  require(rank >= 2, "a result of a grouped product is no matrix");
  const std::int64_t row = (shape[rank - 1] + unit - 1) / unit * unit;
  strides[rank - 2] = row;
  if (rank == 3) strides[0] = multiply_sizes(row, shape[1]);
  return strides;
}

// Returns the program of ranks with a part of the tokens (rows of the first
// operand, columns of the second, or the contracted dim), a part of the
// experts, or both.
//
// The ends of groups are relative to the rank's own tokens. If a rank has a
// part of the experts, it rotates their tokens to the front, because the first
// group begins there. Rows after the last group are not computed, and those of
// other experts become zeros.
std::string tokens_program(const std::string& first,
                           const std::string& second) {
  std::string text = R"(
ranks = rank(FIRST) + rank(SECOND) * 2
rows = (ranks == 8)
columns = (ranks == 7)
depths = (ranks == 6)
ends = clamp(offs - offset(FIRST, 0), 0, local_size(FIRST, 0)) if rows
ends = clamp(offs - offset(SECOND, 1), 0, local_size(SECOND, 1)) if columns
ends = clamp(offs - offset(SECOND, 0), 0, local_size(SECOND, 0)) if depths
y = _grouped_mm(FIRST, SECOND, ends)
starts = cat([zeros_like(slice(ends, 0, 0, 1)), ends]) if rows
start = slice(slice(starts, 0, offset(SECOND, 0)), 0, 0, 1) if rows
own = index_select(ends, 0, arange(local_size(SECOND, 0)) + offset(SECOND, 0)) - start if rows
row = arange(local_size(FIRST, 0)) if rows
there = remainder(row + start, local_size(FIRST, 0)) if rows
back = remainder(row - start, local_size(FIRST, 0)) if rows
z = _grouped_mm(index_select(FIRST, 0, there), SECOND, own) if rows
outside = row >= amax(own, [0], True) if rows
z = index_select(masked_fill(z, unsqueeze(outside, -1), 0), 0, back) if rows
y = if_cut(SECOND, 0, z, y) if rows
return y)";
  const auto replace = [&](std::string_view word, const std::string& name) {
    for (std::size_t at = text.find(word); at != std::string::npos;
         at = text.find(word)) {
      text.replace(at, word.size(), name);
    }
  };
  replace("FIRST", first);
  replace("SECOND", second);
  return text;
}

// Offsets divide a dim among groups, and each part is multiplied by one group
// only. So the points are those of one product.
void by_group(const OpCall& call, IndexSpace& space) {
  const bool shared_out =
      call.op().inputs.size() > 2 && (nth(call.op().inputs, 0).rank() != 3 ||
                                      nth(call.op().inputs, 1).rank() != 3);
  if (!shared_out) return;
  space.flops_per_point = 2;
  for (Factor& factor : space.factors) {
    if (factor.letter != 'g' && factor.letter != 'z') continue;
    space.flops_per_point /= static_cast<double>(factor.size);
    if (factor.kind == FactorKind::kBlocked) {
      factor.kind = FactorKind::kIndexed;
      factor.reason = "offsets say which group goes with what";
    }
  }
}

// The program shards tokens and experts.
void by_expert(const OpCall& call, IndexSpace& space) {
  by_group(call, space);
  const std::vector<TensorMeta>& inputs = call.op().inputs;
  const int a = nth(inputs, 0).rank();
  const int b = nth(inputs, 1).rank();
  if (inputs.size() != 3 || (a == 3 && b == 3)) return;
  const auto open = [&](const DimFactors& dim) {
    for (const FactorId id : dim) {
      space.factor(id).program = ProgramUse::kWhenSharded;
      space.factor(id).least = 1;
      for (std::size_t o = 0; o < space.outputs.size(); ++o) {
        if (!space.outputs[o].holds(id)) {
          space.outputs_without[o][index(id)] =
              Without::partial(ReduceOp::kSum);
        }
      }
    }
  };
  open(b == 3 ? dim_of(space.inputs, 0, 0)
              : dim_of(space.inputs, 1, a == 3 ? 1 : 0));
  if (b == 3) open(dim_of(space.inputs, 1, 0));
}

// --- groups of operands in eight bits; each row and column has a scale ---

Notation scaled_grouped_notation(const OpCall& call) {
  const int a = call.tensor("self").rank();
  const int b = call.tensor("mat2").rank();
  // The last operands are the offsets, a bias, and one scale of the result.
  static const Notation kBatches = fixed_notation("gmk,gkn,gm,gn,[z],+n,->gmn");
  static const Notation kTokens =
      fixed_notation("[t]k,[g]kn,[t],[g]n,[z],+n,->[t]n");
  if (a == 3 && b == 3) return kBatches;
  if (a == 2 && b == 3) return kTokens;
  call_not_stated("scales of groups along other dims");
}

}  // namespace

void words_of_products(RuleWords& words) {
  words.modifier("by_expert()", by_expert);
  words.modifier("keep_aligned()", keep_aligned);
  words.form(einsum("scaled_grouped_mm()", scaled_grouped_notation));
  words.modifier("by_group()", by_group);
  words.strides("grouped", grouped_strides);
}

void define_products(Family f) {
  f.add("_grouped_mm", einsum(kGrouped)
                           .typed("given(out_dtype,first)")
                           .strided("grouped")
                           .refine("by_expert()")
                           .refine("keep_aligned()")
                           .per_rank(tokens_program("self", "mat2")));
  f.add("_scaled_grouped_mm", form("scaled_grouped_mm()")
                                  .typed("given(out_dtype,bf16)")
                                  .strided("grouped")
                                  .refine("keep_aligned()")
                                  .refine("by_group()"));
  // transformers' mixtures of experts call this operator if there is no kernel.
  f.add("transformers.grouped_mm_fallback",
        einsum(kExperts)
            .refine("by_expert()")
            .per_rank(tokens_program("input", "weight")));
}

}  // namespace shardprop
