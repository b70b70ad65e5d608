// This file defines products of quantised operands, which have scales, and of packed
// weights.

#include "ops/definitions/families.h"
#include "ops/definitions/linalg/matrices.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"
#include "ops/forms/space_builder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using linear_algebra::keep_units;

// The CPU's kernel reads 16 elements of a row at once, others 32.
void keep_packs(const OpCall&, IndexSpace& space) {
  for (const FactorId id : dim_of(space.inputs, 0, 1)) {
    keep_units(space, id, 32);
  }
}

// Tensor cores read 16 elements of the rows of both operands. Blocks with a
// scale of their own are multiples of this unit.
void keep_f8_rows(const OpCall&, IndexSpace& space) {
  constexpr std::int64_t kUnit = 16;
  for (const std::size_t i : {0, 1}) {
    const DimFactors row = dim_of(space.inputs, i, 1);
    if (row.size() > 1 && space.factor(row[row.size() - 1]).size % kUnit == 0) {
      continue;
    }
    for (const FactorId id : row) keep_units(space, id, kUnit);
  }
}

// `Scales` is the part of an operand that one scale applies to:
// 1. kOne: the full operand.
// 2. kLines: one row (or column).
// 3. kRuns: 128 elements of a row (or column).
// 4. kSquares: a square of 128 by 128.
// 5. kPacked: unknown, because only the kernel reads this format.
enum class Scales : std::uint8_t { kOne, kLines, kRuns, kSquares, kPacked };
constexpr std::int64_t kBlock = 128;

std::int64_t blocks(std::int64_t size) {
  return size / kBlock + (size % kBlock == 0 ? 0 : 1);
}

// The operand has `lines` rows (or columns) of `length` elements. Lines are dim
// 0 of the scales of the first operand, and dim 1 of those of the second.
Scales scales_of(const TensorMeta& scale, bool is_first, std::int64_t lines,
                 std::int64_t length) {
  if (scale.numel() == 1) return Scales::kOne;
  if (scale.dtype() != DType::kF32) return Scales::kPacked;
  require(scale.rank() == 2, "the scales are not a matrix");
  const std::int64_t along = size_of(scale, is_first ? 0 : 1);
  const std::int64_t across = size_of(scale, is_first ? 1 : 0);
  if (along == lines && across == 1) return Scales::kLines;
  require(
      across == blocks(length) && (along == lines || along == blocks(lines)),
      "the scales are not of blocks of 128");
  return along == lines ? Scales::kRuns : Scales::kSquares;
}

// Adds a dim with a scale for each block of 128. It is blocked unless its size
// is a multiple of the block.
void add_blocks(Term& term, FactorName name, FactorName inner,
                std::int64_t size) {
  if (size % kBlock == 0) {
    term.compound({{name}, {inner, DimUse::kBlocked}});
  } else {
    term.add(name, DimUse::kBlocked);
  }
}

// These recipes of `_scaled_mm_v2` are values of PyTorch's ScalingType.
constexpr std::int64_t kTensorWise = 0;
constexpr std::int64_t kRowWise = 1;

// `OperandScales` has the scales of one operand: a tensor, or a list with a tensor for each
// level (`_scaled_mm_v2`).
struct OperandScales {
  std::vector<TensorMeta> levels;
  // Only the kernel can find the scale of an element: there are two levels, or the scales
  // are swizzled or of blocks.
  bool is_packed = false;
};

OperandScales scales_argument(const OpCall& call, const std::string& operand) {
  const std::string name = "scale_" + operand;
  if (!call.has("recipe_" + operand)) return {{call.tensor(name)}};
  OperandScales out{call.tensors(name)};
  const std::vector<std::int64_t> recipes = call.integers("recipe_" + operand);
  require(!out.levels.empty() && out.levels.size() == recipes.size(),
          "an operand has not one recipe for each of its scales");
  const std::vector<std::int64_t> swizzles =
      call.integers("swizzle_" + operand);
  const bool is_swizzled =
      std::any_of(swizzles.begin(), swizzles.end(),
                  [](std::int64_t swizzle) { return swizzle != 0; });
  // The shape of the scales of blocks depends on the recipe.
  const bool is_blocks = recipes[0] != kTensorWise && recipes[0] != kRowWise;
  out.is_packed = out.levels.size() > 1 || is_swizzled || is_blocks;
  return out;
}

// Checks that the columns of the first operand are multiplied by rows of the second.
void check_contracted(const OpCall& call) {
  if (!call.has("contraction_dim")) return;
  const std::vector<std::int64_t> dims = call.integers("contraction_dim");
  require(dims.empty() || (dims.size() == 2 && wrap_dim(dims[0], 2) == 1 &&
                           wrap_dim(dims[1], 2) == 0),
          "the contracted dims are not columns and rows");
}

// Returns `m(k[j]),(k[j])(n[i]),mk,kn,+(n[i]),->m(n[i])` if both operands have
// scales per block.
Notation scaled_notation(const OpCall& call) {
  const TensorMeta& a = call.tensor("self");
  const TensorMeta& b = call.tensor("mat2");
  require(a.rank() == 2 && b.rank() == 2, "the factors are not matrices");
  check_contracted(call);
  const OperandScales scales_a = scales_argument(call, "a");
  const OperandScales scales_b = scales_argument(call, "b");
  const TensorMeta& scale_a = scales_a.levels[0];
  const TensorMeta& scale_b = scales_b.levels[0];
  const Scales of_a =
      scales_a.is_packed
          ? Scales::kPacked
          : scales_of(scale_a, true, size_of(a, 0), size_of(a, 1));
  const Scales of_b =
      scales_b.is_packed
          ? Scales::kPacked
          : scales_of(scale_b, false, size_of(b, 1), size_of(b, 0));
  const auto is_blocks = [](Scales scales) {
    return scales == Scales::kRuns || scales == Scales::kSquares;
  };
  // Packed operands have elements of four bits, or scales that only the kernel
  // can find.
  const bool is_packed = of_a == Scales::kPacked || of_b == Scales::kPacked;
  const auto add_k = [&](Term& term) {
    if (is_packed) {
      term.add('k', DimUse::kBlocked);
    } else if (is_blocks(of_a) || is_blocks(of_b)) {
      add_blocks(term, 'k', 'j', size_of(a, 1));
    } else {
      term.add('k');
    }
  };
  const auto add_lines = [&](Term& term, Scales scales, FactorName name,
                             FactorName inner, std::int64_t size) {
    if (is_packed) {
      term.add(name, DimUse::kBlocked);
    } else if (scales == Scales::kSquares) {
      add_blocks(term, name, inner, size);
    } else {
      term.add(name);
    }
  };
  const auto add_m = [&](Term& term) {
    add_lines(term, of_a, 'm', 'h', size_of(a, 0));
  };
  const auto add_n = [&](Term& term) {
    add_lines(term, of_b, 'n', 'i', size_of(b, 1));
  };
  // If the last block is incomplete, the number of scales is not a factor of
  // the dim. Then both are blocked.
  const auto scale_term = [&](const TensorMeta& scale, bool is_first,
                              Scales scales, FactorName line,
                              std::int64_t size) {
    Term term;
    const FactorName own_line = is_first ? 'x' : 'z';
    const FactorName own_run = is_first ? 'y' : 'w';
    if (scales == Scales::kOne || scales == Scales::kPacked) {
      require(scale.rank() <= 2, "a scale has more than two dims");
      if (scale.rank() > 0) term.add(own_line, DimUse::kBlocked);
      if (scale.rank() > 1) term.add(own_run, DimUse::kBlocked);
      return term;
    }
    const bool runs_whole = size_of(a, 1) % kBlock == 0;
    const bool line_whole = scales != Scales::kSquares || size % kBlock == 0;
    const auto add_across = [&] {
      if (scales != Scales::kLines && runs_whole) {
        term.add('k');
      } else {
        term.add(own_run, DimUse::kBlocked);
      }
    };
    if (!is_first) add_across();
    if (line_whole) {
      term.add(line);
    } else {
      term.add(own_line, DimUse::kBlocked);
    }
    if (is_first) add_across();
    return term;
  };
  Notation notation;
  notation.inputs.resize(2);
  add_m(notation.inputs[0]);
  add_k(notation.inputs[0]);
  add_k(notation.inputs[1]);
  add_n(notation.inputs[1]);
  const auto add_scales = [&](const OperandScales& scales, const Term& first) {
    notation.inputs.push_back(first);
    for (std::size_t i = 1; i < scales.levels.size(); ++i) {
      notation.inputs.push_back(Term::replicated());
    }
  };
  add_scales(scales_a, scale_term(scale_a, true, of_a, 'm', size_of(a, 0)));
  add_scales(scales_b, scale_term(scale_b, false, of_b, 'n', size_of(b, 1)));
  Term bias;
  bias.is_added = true;
  add_n(bias);
  notation.inputs.push_back(std::move(bias));
  notation.inputs.emplace_back();  // the scale of the result
  notation.outputs.resize(1);
  add_m(notation.outputs[0]);
  add_n(notation.outputs[0]);
  return notation;
}

// --- weights of four bits, packed by kernels ---

// Returns the number of columns: eight per row of the weight in CUDA's layout,
// else one per row.
std::int64_t unpacked_columns(const OpCall& call, const FactorName&) {
  const TensorMeta& weight = call.tensor("mat2");
  return weight.rank() == 4 ? multiply_sizes(size_of(weight, 0), 8)
                            : size_of(weight, 0);
}

OpDefinition by_packed_weight(std::string_view weight) {
  return mapped("m_," + std::string(weight) + ",___->m{n:unpacked_columns()}")
      .refine("packed_flops()");
}

}  // namespace

void words_of_scaled(RuleWords& words) {
  words.size("unpacked_columns", unpacked_columns);
  words.modifier("packed_flops()", [](const OpCall& call, IndexSpace& space) {
    space.flops_per_point = 2.0 *
                            static_cast<double>(size_of(call.first(), 1)) *
                            static_cast<double>(unpacked_columns(call, 'n'));
  });
  words.modifier("keep_packs()", keep_packs);
  words.form(einsum("scaled_mm()", scaled_notation));
  words.modifier("keep_f8_rows()", keep_f8_rows);
}

void define_scaled(Family f) {
  f.add("_weight_int8pack_mm",
        in_order(einsum("mk,nk,n->mn").refine("keep_packs()")));
  f.add({"_scaled_mm", "_scaled_mm_v2"}, form("scaled_mm()")
                                             .typed("given(out_dtype,first)")
                                             .refine("keep_f8_rows()"));
  f.add("_weight_int4pack_mm", in_order(by_packed_weight("____")));
  f.add("_weight_int4pack_mm_for_cpu", in_order(by_packed_weight("__")));
}

}  // namespace shardprop
