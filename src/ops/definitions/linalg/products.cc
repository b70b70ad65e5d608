// This file defines products of quantised operands and of groups: scaled and
// weight-only matrices, experts.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"
#include "ops/rules/fixed_notation.h"

#include <algorithm>

namespace shardprop {
namespace {

// --- scaled and weight-only products ---

// Splits a factor that kernels read in full units: the inner of the two new
// factors is one unit, and is blocked.
void keep_units(IndexSpace& space, FactorId id, std::int64_t unit) {
  const std::string reason =
      "the kernel takes it in units of " + std::to_string(unit);
  const std::int64_t size = space.factor(id).size;
  if (unit == 1 || !space.factor(id).shardable()) return;
  if (size % unit != 0) {
    space.factor(id).kind = FactorKind::kBlocked;
    space.factor(id).program = ProgramUse::kNever;
    space.factor(id).reason = reason;
    return;
  }
  const auto inner = static_cast<FactorId>(space.add_factor(unit));
  space.factor(inner).kind = FactorKind::kBlocked;
  space.factor(inner).reason = reason;
  space.factor(id).size = size / unit;
  const auto split = [&](std::vector<Operand>& operands) {
    for (Operand& operand : operands) {
      for (DimFactors& dim : operand.dims) {
        DimFactors now;
        for (const FactorId factor : dim) {
          now.push_back(factor);
          if (factor == id) now.push_back(inner);
        }
        dim = std::move(now);
      }
    }
  };
  split(space.inputs);
  split(space.outputs);
  space.seal();
}

// The CPU's kernel reads 16 elements of a row at once, others 32.
void keep_packs(const OpCall&, IndexSpace& space) {
  for (const FactorId id : DimFactors(space.inputs[0].dims[1])) {
    keep_units(space, id, 32);
  }
}

// Tensor cores read 16 elements of the rows of both operands. Blocks with a
// scale of their own are multiples of this unit.
void keep_f8_rows(const OpCall&, IndexSpace& space) {
  constexpr std::int64_t kUnit = 16;
  for (const std::size_t i : {0, 1}) {
    const DimFactors row = space.inputs[i].dims[1];
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
  const std::int64_t along = scale.size(is_first ? 0 : 1);
  const std::int64_t across = scale.size(is_first ? 1 : 0);
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

// Returns `m(k[j]),(k[j])(n[i]),mk,kn,+(n[i]),->m(n[i])` if both operands have
// scales per block.
Notation scaled_notation(const OpCall& call) {
  const TensorMeta& a = call.tensor("self");
  const TensorMeta& b = call.tensor("mat2");
  require(a.rank() == 2 && b.rank() == 2, "the factors are not matrices");
  const TensorMeta& scale_a = call.tensor("scale_a");
  const TensorMeta& scale_b = call.tensor("scale_b");
  const Scales of_a = scales_of(scale_a, true, a.size(0), a.size(1));
  const Scales of_b = scales_of(scale_b, false, b.size(1), b.size(0));
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
      add_blocks(term, 'k', 'j', a.size(1));
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
    add_lines(term, of_a, 'm', 'h', a.size(0));
  };
  const auto add_n = [&](Term& term) {
    add_lines(term, of_b, 'n', 'i', b.size(1));
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
    const bool runs_whole = a.size(1) % kBlock == 0;
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
  notation.inputs.resize(6);
  add_m(notation.inputs[0]);
  add_k(notation.inputs[0]);
  add_k(notation.inputs[1]);
  add_n(notation.inputs[1]);
  notation.inputs[2] = scale_term(scale_a, true, of_a, 'm', a.size(0));
  notation.inputs[3] = scale_term(scale_b, false, of_b, 'n', b.size(1));
  notation.inputs[4].is_added = true;  // the bias
  add_n(notation.inputs[4]);
  notation.outputs.resize(1);
  add_m(notation.outputs[0]);
  add_n(notation.outputs[0]);
  return notation;
}

// --- groups: rows of one operand belong to matrices of the other ---

// Returns the number of elements in 16 bytes.
std::int64_t aligned_elements(DType dtype) {
  return std::max<std::int64_t>(
      16 / static_cast<std::int64_t>(item_size(dtype)), 1);
}

// Rows of both operands start at multiples of 16 bytes.
void keep_aligned(const OpCall& call, IndexSpace& space) {
  for (std::size_t i = 0; i < 2; ++i) {
    const TensorMeta& meta = call.op().inputs[i];
    for (int d = meta.rank() - 2; d < meta.rank(); ++d) {
      if (meta.strides()[index(d)] != 1) continue;
      for (const FactorId id : DimFactors(space.inputs[i].dims[index(d)])) {
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
      call.op().inputs.size() > 2 &&
      (call.op().inputs[0].rank() != 3 || call.op().inputs[1].rank() != 3);
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
  const int a = inputs[0].rank();
  const int b = inputs[1].rank();
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
  open(b == 3 ? space.inputs[0].dims[0] : space.inputs[1].dims[a == 3 ? 1 : 0]);
  if (b == 3) open(space.inputs[1].dims[0]);
}

// --- weights of four bits, packed by kernels ---

// Returns the number of columns: eight per row of the weight in CUDA's layout,
// else one per row.
std::int64_t unpacked_columns(const OpCall& call, const FactorName&) {
  const TensorMeta& weight = call.tensor("mat2");
  return weight.rank() == 4 ? multiply_sizes(weight.size(0), 8)
                            : weight.size(0);
}

OpDefinition by_packed_weight(std::string_view weight) {
  return mapped("m_," + std::string(weight) + ",___->m{n:unpacked_columns()}")
      .refine("packed_flops()");
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
  words.size("unpacked_columns", unpacked_columns);
  words.modifier("packed_flops()", [](const OpCall& call, IndexSpace& space) {
    space.flops_per_point = 2.0 * static_cast<double>(call.first().size(1)) *
                            static_cast<double>(unpacked_columns(call, 'n'));
  });
  words.modifier("keep_packs()", keep_packs);
  words.form(einsum("scaled_mm()", scaled_notation));
  words.modifier("keep_f8_rows()", keep_f8_rows);
  words.modifier("by_expert()", by_expert);
  words.modifier("keep_aligned()", keep_aligned);
  words.form(einsum("scaled_grouped_mm()", scaled_grouped_notation));
  words.modifier("by_group()", by_group);
  words.strides("grouped", grouped_strides);
}

void define_products(Family f) {
  f.add("_weight_int8pack_mm",
        in_order(einsum("mk,nk,n->mn").refine("keep_packs()")));
  f.add("_scaled_mm", form("scaled_mm()")
                          .typed("given(out_dtype,first)")
                          .refine("keep_f8_rows()"));
  f.add("_grouped_mm", einsum(kGrouped)
                           .typed("given(out_dtype,first)")
                           .strided("grouped")
                           .refine("by_expert()")
                           .refine("keep_aligned()")
                           .per_rank(tokens_program("self", "mat2")));
  f.add("_weight_int4pack_mm", in_order(by_packed_weight("____")));
  f.add("_weight_int4pack_mm_for_cpu", in_order(by_packed_weight("__")));
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
