// Linear algebra: the dims of matrices are blocked, those of batches are
// parallel.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/matrices.h"
#include "ops/forms/indices.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using namespace linear_algebra;  // NOLINT(google-build-using-namespace)

// Terms over rows and columns form a sum: each rank sums its part of the
// diagonal.
constexpr std::string_view kTrace = R"(
rows = trailing(arange(local_size(self, 0)) + offset(self, 0), 1)
columns = arange(local_size(self, 1)) + offset(self, 1)
return sum(masked_fill(self, ne(rows, columns), 0), dtype=dtype(out)))";

void trace_adds_up(const OpCall&, IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    space.factors[f].kind = FactorKind::kParallel;
    space.factors[f].program = ProgramUse::kWhenSharded;
    space.outputs_without[0][f] = Without::partial(ReduceOp::kSum);
  }
}

// --- Diagonals ---

// The operand is a vector for the diagonal of a matrix, or a matrix whose
// diagonal is read.
std::string diag_notation(const OpCall& call) {
  const int rank = call.first().rank();
  require(rank == 1 || rank == 2, "the operand is neither vector nor matrix");
  return rank == 1 ? "[_]->[k][k]" : "mn->[k]";
}

std::int64_t diag_size(const OpCall& call, char) {
  const TensorMeta& self = call.first();
  const std::int64_t offset =
      call.integer(call.has("diagonal") ? "diagonal" : "offset");
  if (call.base_name() == "diagflat" || self.rank() == 1) {
    constexpr std::int64_t kFar = std::int64_t{1} << 40;
    require(offset > -kFar && offset < kFar, "an offset is out of range");
    return add_sizes(self.numel(), offset < 0 ? -offset : offset);
  }
  return diagonal_length(self.size(0), self.size(1), offset);
}

// Partial sums over rows and columns give the diagonal of a matrix. If the
// result is a matrix, each rank produces its own part.
void cut_diagonal(const OpCall& call, IndexSpace& space) {
  const TensorMeta& made = call.op().outputs[0];
  if (made.rank() == 1) {
    trace_adds_up(call, space);
    const bool adds_up = made.dtype() != DType::kBool && made.numel() > 0;
    for (Factor& factor : space.factors) {
      if (adds_up) continue;
      factor.kind = FactorKind::kBlocked;
      factor.program = ProgramUse::kNever;
    }
  } else if (call.first().numel() > 0) {
    for (const int dim : {0, 1}) {
      make_in_parts(call, space, dim, "it lies along a diagonal");
    }
  }
}

constexpr std::string_view kDiagonalProgram = R"(
vector = rank(out) == 2
up = vector * (0 < OFFSET) == 1
down = (vector == False) * (OFFSET < 0) == 1
place = places(out, 1) if vector
place = place - OFFSET if up
x = index_select(reshape(self, [-1]), 0, clamp(place, 0, numel(self) - 1)) if vector
hit = unsqueeze(places(out, 0) + OFFSET, 1) == places(out, 1) if vector
made = where(hit, x, zeros_like(x)) if vector
row = places(self, 0) if not vector
miss = ne(places(self, 1), unsqueeze(row + OFFSET, 1)) if not vector
x = sum(masked_fill(self, miss, 0), [1], dtype=dtype(out)) if not vector
row = row + OFFSET if down
outside = (row < 0) | (row >= numel(out)) if not vector
none = full([numel(out)], 0, dtype=dtype(out)) if not vector
made = index_add(none, 0, masked_fill(row, outside, 0), masked_fill(x, outside, 0)) if not vector
return made)";

std::string diagonal_program(std::string_view offset) {
  std::string text(kDiagonalProgram);
  constexpr std::string_view kName = "OFFSET";
  for (std::size_t at = text.find(kName); at != std::string::npos;
       at = text.find(kName)) {
    text.replace(at, kName.size(), offset);
  }
  return text;
}

// Fills the diagonal of a matrix. With `wrap`, it starts again after each
// square block, with one row in between.
constexpr std::string_view kFilled = R"(
row = places(self, 0)
row = remainder(row, size(self, 1) + 1) if wrap
return masked_fill(self, unsqueeze(row, 1) == places(self, 1), fill_value))";

OpDefinition filled_diagonal() {
  return mapped("diagonal_written()",
                [](const OpCall& call) {
                  const int rank = call.first().rank();
                  require(rank >= 2, "a vector has no diagonal");
                  std::vector<int> every(index(rank));
                  std::iota(every.begin(), every.end(), 0);
                  const std::string dims = dims_notation(
                      rank, rank == 2 ? std::vector<int>{} : every);
                  return dims + "->" + dims;
                })
      .strided([](const OpCall& call, const Dims&, DType) {
        return call.first().strides();
      })
      .refine("",
              [](const OpCall&, IndexSpace& space) {
                for (Factor& factor : space.factors) {
                  factor.program = ProgramUse::kWhenSharded;
                }
              })
      .per_rank(kFilled);
}

std::string qr_notation(const OpCall& call) {
  const auto mode = call.op().string_arg("mode").value_or("reduced");
  require(mode == "reduced" || mode == "complete" || mode == "r",
          "`mode` is not reduced, complete or r");
  return mode == "r" ? "...[mn]->[z],...[kn]" : "...[mn]->...[mu],...[un]";
}

std::int64_t qr_side(const OpCall& call, char letter) {
  return letter == 'z' ? 0 : side(call, letter);
}

std::string svd_notation(const OpCall& call) {
  return call.boolean_or("compute_uv", true) ? "...[mn]->...[mu],...[k],...[vn]"
                                             : "...[mn]->[z],...[k],[z]";
}

// The result has V, not its transpose, as in old versions of numpy.
std::string old_svd_notation(const OpCall& call) {
  return call.boolean_or("compute_uv", true)
             ? "...[mn]->...[mu]^,...[k],...[nv]"
             : "...[mn]->...[mu],...[k],...[nv]^";
}
std::int64_t old_svd_side(const OpCall& call, char letter) {
  const std::int64_t rows = from_end(call, 2);
  const std::int64_t columns = from_end(call, 1);
  const bool some =
      call.boolean_or("some", true) && call.boolean_or("compute_uv", true);
  if (!some && letter == 'u') return rows;
  if (!some && letter == 'v') return columns;
  return std::min(rows, columns);
}

// Returns pivots and factors; results that are not requested are empty vectors.
std::string lu_unpack_notation(const OpCall& call) {
  const bool data = call.boolean_or("unpack_data", true);
  const bool pivots = call.boolean_or("unpack_pivots", true);
  return std::string("...[mn],...[p]->") + (pivots ? "...[mm]" : "[z]") +
         (data ? ",...[mk],...[kn]" : ",[z],[z]");
}

// The operands are matrices and up to two tolerances, which broadcast with the
// batch. The tolerances are not read if the matrices have no elements.
OpDefinition with_tolerances(std::string_view results) {
  return counted(
             "with_tolerances()",
             [results](const OpCall& call) {
               const bool is_empty = call.first().numel() == 0;
               return std::string(is_empty ? "...[mn],*,*" : "...[mn],...,...")
                   .append(results);
             })
      .refine("", [](const OpCall& call, IndexSpace& space) {
        if (call.first().numel() > 0) return;
        space.unread.resize(call.op().inputs.size() - 1);
        std::iota(space.unread.begin(), space.unread.end(), 1);
      });
}

std::string eigh_notation(const OpCall& call) {
  return call.boolean_or("compute_v", true) ? "...[nn]->...[n],...[nn]"
                                            : "...[nn]->...[n],[z]";
}

// Without N, the number of powers is the number of elements, which each rank
// must have in full.
std::string vander_notation(const OpCall& call) {
  return call.op().int_arg("N") ? "...n->...n[c]" : "...[n]->...[n][c]";
}

void define_diagonals(Family& f) {
  f.add("trace", einsum("[mn]->")
                     .typed(of_sum)
                     .linear_in("self")
                     .refine("", trace_adds_up)
                     .per_rank(kTrace));
  f.add("diag", mapped("diag()", diag_notation, diag_size)
                    .passes()
                    .refine("", cut_diagonal)
                    .per_rank(diagonal_program("diagonal")));
  f.add("diagflat", mapped("*->[nn]", diag_size)
                        .passes()
                        .refine("", cut_diagonal)
                        .per_rank(diagonal_program("offset")));
  f.add("fill_diagonal_", filled_diagonal());
}

}  // namespace

void define_linalg(Family f) {
  define_diagonals(f);
  f.add({"linalg_cholesky_ex", "linalg_inv_ex"},
        matrices("...[nn]->...[nn],...", "si"));
  f.add({"linalg_cholesky", "cholesky", "linalg_inv", "inverse"},
        matrices("...[nn]->...[nn]", "s"));
  f.add("cholesky_inverse", matrices("...[nn]->...[nn]", "s"));
  f.add("linalg_lu", rows_first("...[mn]->...[mm],...[mk],...[kn]", "s"));
  f.add({"linalg_matrix_power", "matrix_power"},
        counted("...[nn]->...[nn]", side)
            .strided([](const OpCall& call, const Dims& shape, DType dtype) {
              return call.integer("n") == -1
                         ? column_major(call, shape, dtype)
                         : make_meta(shape, dtype).strides();
            }));
  f.add({"linalg_matrix_exp", "matrix_exp"},
        in_order(rows_first("...[nn]->...[nn]", "s")));
  f.add({"linalg_pinv", "pinverse"}, with_tolerances("->...[nm]"));
  f.add("linalg_matrix_rank", with_tolerances("->...").typed(DType::kI64));
  f.add("nuclear_norm.default",
        counted(
            "nuclear_norm()",
            [](const OpCall& call) -> std::string {
              return call.boolean("keepdim") ? "...[mn]->...[__]"
                                             : "...[mn]->...";
            },
            [](const OpCall&, char) { return std::int64_t{1}; })
            .typed(types("r")));
  f.add("linalg_cond", rows_first("...[mn]->...", "r"));
  f.add({"linalg_vander", "vander"},
        counted("vander()", vander_notation, [](const OpCall& call, char) {
          return call.op().int_arg("N").value_or(from_end(call, 1));
        }));
  // The memory order of the matrix decides whether its factors are those of the
  // transposed matrix. The gradients depend on that choice.
  f.add("_linalg_det",
        in_order(matrices("...[nn]->...,...[nn],...[n]", "ssi")));
  f.add({"linalg_det", "det", "logdet"}, rows_first("...[nn]->...", "s"));
  f.add("_linalg_slogdet",
        in_order(matrices("...[nn]->...,...,...[nn],...[n]", "srsi")));
  f.add({"linalg_slogdet", "slogdet"}, rows_first("...[nn]->...,...", "sr"));
  f.add("_linalg_eigh", counted("eigh()", eigh_notation, qr_side)
                            .typed(types("rs"))
                            .strided(column_major));
  f.add("linalg_eigh", matrices("...[nn]->...[n],...[nn]", "rs"));
  f.add("linalg_eigvalsh", rows_first("...[nn]->...[n]", "r"));
  f.add("linalg_eig", matrices("...[nn]->...[n],...[nn]", "cc"));
  f.add("linalg_eigvals", rows_first("...[nn]->...[n]", "c"));
  f.add("_linalg_svd", counted("svd()", svd_notation, qr_side)
                           .typed(types("srs"))
                           .strided(column_major));
  f.add("linalg_svd", counted("svd()", svd_notation, qr_side)
                          .typed(types("srs"))
                          .strided(column_major));
  f.add("linalg_svdvals", rows_first("...[mn]->...[k]", "r"));
  f.add("linalg_qr", counted("qr()", qr_notation, qr_side)
                         .typed(types("ss"))
                         .strided(column_major));
  f.add("geqrf", matrices("...[mn]->...[mn],...[k]", "ss"));
  f.add({"linalg_lu_factor_ex", "_lu_with_info"},
        matrices("...[mn]->...[mn],...[k],...", "sii"));
  f.add("linalg_lu_factor", matrices("...[mn]->...[mn],...[k]", "si"));
  f.add(
      "lu_unpack",
      counted("lu_unpack()", lu_unpack_notation, qr_side).typed(types("sss")));
  f.add("svd",
        counted("svd()", old_svd_notation, old_svd_side).typed(types("srs")));
  f.add("qr",
        counted("...[mn]->...[mu]^,...[un]^", old_svd_side).typed(types("ss")));
  f.add("linalg_ldl_factor", matrices("...[nn]->...[nn],...[n]", "si"));
  f.add("linalg_ldl_factor_ex", matrices("...[nn]->...[nn],...[n],...", "sii"));
}

}  // namespace shardprop
