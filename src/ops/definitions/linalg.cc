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
constexpr std::string_view kDiag = "_->{kk} | mn->{k}";

std::int64_t diag_size(const OpCall& call, const FactorName&) {
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
                  const Term dims = term_of_dims(
                      rank, rank == 2 ? std::vector<int>{} : every);
                  return Notation{{dims}, {dims}, {}, {}};
                })
      .strided([](const OpCall& call, const Dims&, DType) {
        return call.first().strides();
      })
      .refine("places_by_program()",
              [](const OpCall&, IndexSpace& space) {
                for (Factor& factor : space.factors) {
                  factor.program = ProgramUse::kWhenSharded;
                }
              })
      .per_rank(kFilled);
}

constexpr std::string_view kQr =
    "if mode is r: ...{mn}->{z:0},...{kn} | ...{mn}->...{mu},...{un}";

void check_qr_mode(const OpCall& call, const IndexSpace&) {
  const auto mode = call.op().string_arg("mode").value_or("reduced");
  require(mode == "reduced" || mode == "complete" || mode == "r",
          "`mode` is not reduced, complete or r");
}

constexpr std::string_view kSvd =
    "if not compute_uv: ...{mn}->{z:0},...{k},{z} | "
    "...{mn}->...{mu},...{k},...{vn}";

// The result has V, not its transpose, as in old versions of numpy.
constexpr std::string_view kOldSvd =
    "if not compute_uv: ...{mn}->...{mu},...{k},...{nv}:column_major | "
    "...{mn}->...{mu}:column_major,...{k},...{nv}";
std::int64_t old_svd_side(const OpCall& call, const FactorName& letter) {
  const std::int64_t rows = from_end(call, 2);
  const std::int64_t columns = from_end(call, 1);
  const bool some =
      call.boolean_or("some", true) && call.boolean_or("compute_uv", true);
  if (!some && letter == 'u') return rows;
  if (!some && letter == 'v') return columns;
  return std::min(rows, columns);
}

// Returns pivots and factors; results that are not requested are empty vectors.
constexpr std::string_view kLuUnpack =
    "if unpack_data and unpack_pivots: "
    "...{mn},...{p}->...{mm},...{mk},...{kn} | "
    "if unpack_data: ...{mn},...{p}->{z:0},...{mk},...{kn} | "
    "if unpack_pivots: ...{mn},...{p}->...{mm},{z:0},{z} | "
    "...{mn},...{p}->{z:0},{z},{z}";

// The operands are matrices and up to two tolerances, which broadcast with the
// batch. The tolerances are not read if the matrices have no elements.
OpDefinition with_tolerances(const Term& results) {
  return counted("with_tolerances()",
                 [results](const OpCall& call) {
                   const bool is_empty = call.first().numel() == 0;
                   const Term tolerance =
                       is_empty ? Term::replicated() : Term().leading();
                   return Notation{{Term().leading().full({'m', 'n'}),
                                    tolerance, tolerance},
                                   {results},
                                   {},
                                   {}};
                 })
      .refine("unread_tolerances()", [](const OpCall& call, IndexSpace& space) {
        if (call.first().numel() > 0) return;
        space.unread.resize(call.op().inputs.size() - 1);
        std::iota(space.unread.begin(), space.unread.end(), 1);
      });
}

constexpr std::string_view kEigh =
    "if not compute_v: ...{nn}->...{n},{z:0} | ...{nn}->...{n},...{nn}";

// Without N, the number of powers is the number of elements, which each rank
// must have in full.
constexpr std::string_view kVander = "if N: ...n->...n{c:N} | ...{n}->...{nn}";

void define_diagonals(Family& f) {
  f.add("trace", einsum("[mn]->")
                     .typed("given(dtype,sum(first))")
                     .linear_in("self")
                     .refine("trace_adds_up()", trace_adds_up)
                     .per_rank(kTrace));
  f.add("diag", mapped(kDiag, diag_size)
                    .passes()
                    .refine("cut_diagonal()", cut_diagonal)
                    .per_rank(diagonal_program("diagonal")));
  f.add("diagflat", mapped("*->{nn}", diag_size)
                        .passes()
                        .refine("cut_diagonal()", cut_diagonal)
                        .per_rank(diagonal_program("offset")));
  f.add("fill_diagonal_", filled_diagonal());
}

}  // namespace

void define_linalg(Family f) {
  define_diagonals(f);
  f.add({"linalg_cholesky_ex", "linalg_inv_ex"},
        matrices("...{nn}->...{nn},...", "first,i32"));
  f.add({"linalg_cholesky", "cholesky", "linalg_inv", "inverse"},
        matrices("...{nn}->...{nn}", "first"));
  f.add("cholesky_inverse", matrices("...{nn}->...{nn}", "first"));
  f.add("linalg_lu", rows_first("...{mn}->...{mm},...{mk},...{kn}", "first"));
  f.add({"linalg_matrix_power", "matrix_power"},
        counted("...{nn}->...{nn}", side)
            .strided([](const OpCall& call, const Dims& shape, DType dtype) {
              return call.integer("n") == -1
                         ? column_major(call, shape, dtype)
                         : make_meta(shape, dtype).strides();
            }));
  f.add({"linalg_matrix_exp", "matrix_exp"},
        in_order(rows_first("...{nn}->...{nn}", "first")));
  f.add({"linalg_pinv", "pinverse"},
        with_tolerances(Term().leading().full({'n', 'm'})));
  f.add("linalg_matrix_rank",
        with_tolerances(Term().leading()).typed(DType::kI64));
  f.add("nuclear_norm.default",
        counted("if keepdim: ...{mn}->...__ | ...{mn}->...")
            .typed("real(first)"));
  f.add("linalg_cond", rows_first("...{mn}->...", "real(first)"));
  f.add({"linalg_vander", "vander"}, counted(kVander));
  // The memory order of the matrix decides whether its factors are those of the
  // transposed matrix. The gradients depend on that choice.
  f.add("_linalg_det",
        in_order(matrices("...{nn}->...,...{nn},...{n}", "first,first,i32")));
  f.add({"linalg_det", "det", "logdet"}, rows_first("...{nn}->...", "first"));
  f.add("_linalg_slogdet", in_order(matrices("...{nn}->...,...,...{nn},...{n}",
                                             "first,real(first),first,i32")));
  f.add({"linalg_slogdet", "slogdet"},
        rows_first("...{nn}->...,...", "first,real(first)"));
  f.add("_linalg_eigh",
        counted(kEigh).typed("real(first),first").strided(column_major));
  f.add("linalg_eigh",
        matrices("...{nn}->...{n},...{nn}", "real(first),first"));
  f.add("linalg_eigvalsh", rows_first("...{nn}->...{n}", "real(first)"));
  f.add("linalg_eig",
        matrices("...{nn}->...{n},...{nn}", "complex(first),complex(first)"));
  f.add("linalg_eigvals", rows_first("...{nn}->...{n}", "complex(first)"));
  f.add("_linalg_svd", counted(kSvd, side)
                           .typed("first,real(first),first")
                           .strided(column_major));
  f.add("linalg_svd", counted(kSvd, side)
                          .typed("first,real(first),first")
                          .strided(column_major));
  f.add("linalg_svdvals", rows_first("...{mn}->...{k}", "real(first)"));
  f.add("linalg_qr", counted(kQr, side)
                         .checked(check_qr_mode)
                         .typed("first,first")
                         .strided(column_major));
  f.add("geqrf", matrices("...{mn}->...{mn},...{k}", "first,first"));
  f.add({"linalg_lu_factor_ex", "_lu_with_info"},
        matrices("...{mn}->...{mn},...{k},...", "first,i32,i32"));
  f.add("linalg_lu_factor", matrices("...{mn}->...{mn},...{k}", "first,i32"));
  f.add("lu_unpack", counted(kLuUnpack, side).typed("first,first,first"));
  f.add("svd", counted(kOldSvd, old_svd_side).typed("first,real(first),first"));
  f.add("qr", counted("...{mn}->...{mu}:column_major,...{un}:column_major",
                      old_svd_side)
                  .typed("first,first"));
  f.add("linalg_ldl_factor", matrices("...{nn}->...{nn},...{n}", "first,i32"));
  f.add("linalg_ldl_factor_ex",
        matrices("...{nn}->...{nn},...{n},...", "first,i32,i32"));
}

}  // namespace shardprop
