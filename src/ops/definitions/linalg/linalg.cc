// Linear algebra: the dims of matrices are blocked, those of batches are
// parallel.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/linalg/matrices.h"
#include "ops/definitions/words.h"
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
    nth(space.outputs_without, 0)[f] = Without::partial(ReduceOp::kSum);
  }
}

// --- Diagonals ---

// The operand is a vector for the diagonal of a matrix, or a matrix whose
// diagonal is read.
constexpr std::string_view kDiag = "_->{k:diagonal()}{k} | mn->{k:diagonal()}";

std::int64_t diagonal_offset(const OpCall& call) {
  return call.integer(call.has("diagonal") ? "diagonal" : "offset");
}

// Returns the size of the matrix whose diagonal has all elements of the operand.
std::int64_t flat_diag_size(const OpCall& call, const FactorName&) {
  const std::int64_t offset = diagonal_offset(call);
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  require(offset > -kFar && offset < kFar, "an offset is out of range");
  return add_sizes(call.first().numel(), offset < 0 ? -offset : offset);
}

std::int64_t diag_size(const OpCall& call, const FactorName& name) {
  const TensorMeta& self = call.first();
  if (self.rank() == 1) return flat_diag_size(call, name);
  return diagonal_length(size_of(self, 0), size_of(self, 1),
                         diagonal_offset(call));
}

// Partial sums over rows and columns give the diagonal of a matrix. If the
// result is a matrix, each rank produces its own part.
void cut_diagonal(const OpCall& call, IndexSpace& space) {
  const TensorMeta& made = nth(call.op().outputs, 0);
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
  return form("diagonal_written()")
      .strided("first")
      .refine("made_in_parts()")
      .per_rank(kFilled);
}

constexpr std::string_view kQr =
    "if mode is r: ...{mn}->{z:0},...{k:min(m,n)}{n}:column_major | "
    "if mode is complete: ...{mn}->...{mm}:column_major,...{mn}:column_major | "
    "...{mn}->...{m}{k:min(m,n)}:column_major,...{kn}:column_major";

constexpr std::string_view kSvd =
    "if not compute_uv: ...{mn}->{z:0},...{k:min(m,n)},{z} | "
    "if full_matrices: "
    "...{mn}->...{mm}:column_major,...{k:min(m,n)},...{nn}:column_major | "
    "...{mn}->...{m}{k:min(m,n)}:column_major,...{k},...{kn}:column_major";

// The result has V, not its transpose, as in old versions of numpy.
constexpr std::string_view kOldSvd =
    "if not compute_uv: ...{mn}->...{mm},...{k:min(m,n)},...{nn}:column_major "
    "| if not some: ...{mn}->...{mm}:column_major,...{k:min(m,n)},...{nn} | "
    "...{mn}->...{m}{k:min(m,n)}:column_major,...{k},...{nk}";
constexpr std::string_view kOldQr =
    "if not some: ...{mn}->...{mm}:column_major,...{mn}:column_major | "
    "...{mn}->...{m}{k:min(m,n)}:column_major,...{kn}:column_major";

// Returns pivots and factors; results that are not requested are empty vectors.
constexpr std::string_view kLuUnpack =
    "if unpack_data and unpack_pivots: "
    "...{mn},...{p}->...{mm},...{m}{k:min(m,n)},...{kn} | "
    "if unpack_data: ...{mn},...{p}->{z:0},...{m}{k:min(m,n)},...{kn} | "
    "if unpack_pivots: ...{mn},...{p}->...{mm},{z:0},{z} | "
    "...{mn},...{p}->{z:0},{z},{z}";

// The operands are matrices and up to two tolerances, which broadcast with the
// batch. The tolerances are not read if the matrices have no elements.
OpDefinition tolerances_form(std::string text, const Term& results) {
  return mapped(std::move(text), [results](const OpCall& call) {
    const bool is_empty = call.first().numel() == 0;
    const Term tolerance = is_empty ? Term::replicated() : Term().leading();
    return Notation{{Term().leading().full({'m', 'n'}), tolerance, tolerance},
                    {results},
                    {},
                    {}};
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
                     .refine("trace_adds_up()")
                     .per_rank(kTrace));
  f.add("diag", mapped(kDiag)
                    .passes()
                    .refine("cut_diagonal()")
                    .per_rank(diagonal_program("diagonal")));
  f.add("diagflat", mapped("*->{n:flat_diagonal()}{n}")
                        .passes()
                        .refine("cut_diagonal()")
                        .per_rank(diagonal_program("offset")));
  f.add("fill_diagonal_", filled_diagonal());
}

}  // namespace

void words_of_linalg(RuleWords& words) {
  words.strides(
      "matrix_power", [](const OpCall& call, const Dims& shape, DType dtype) {
        return call.integer("n") == -1 ? column_major(call, shape, dtype)
                                       : make_meta(shape, dtype).strides();
      });
  words.size("diagonal", diag_size);
  words.size("flat_diagonal", flat_diag_size);
  words.form(tolerances_form("with_tolerances(nm)",
                             Term().leading().full({'n', 'm'})));
  words.form(tolerances_form("with_tolerances()", Term().leading()));
  words.form(mapped("diagonal_written()", [](const OpCall& call) {
    const int rank = call.first().rank();
    require(rank >= 2, "a vector has no diagonal");
    std::vector<int> every(index(rank));
    std::iota(every.begin(), every.end(), 0);
    const Term dims =
        term_of_dims(rank, rank == 2 ? std::vector<int>{} : every);
    return Notation{{dims}, {dims}, {}, {}};
  }));
  words.modifier("unread_tolerances()",
                 [](const OpCall& call, IndexSpace& space) {
                   if (call.first().numel() > 0) return;
                   space.unread.resize(call.op().inputs.size() - 1);
                   std::iota(space.unread.begin(), space.unread.end(), 1);
                 });
  words.modifier("trace_adds_up()", trace_adds_up);
  words.modifier("cut_diagonal()", cut_diagonal);
}

void define_linalg(Family f) {
  define_diagonals(f);
  f.add("linalg_cholesky_ex",
        matrices("...{nn}->...{nn},...", "first,i32").linalg_work("1/3"));
  f.add("linalg_inv_ex",
        matrices("...{nn}->...{nn},...", "first,i32").linalg_work("2"));
  f.add({"linalg_cholesky", "cholesky"},
        matrices("...{nn}->...{nn}", "first").linalg_work("1/3"));
  f.add({"linalg_inv", "inverse"},
        matrices("...{nn}->...{nn}", "first").linalg_work("2"));
  f.add("cholesky_inverse",
        matrices("...{nn}->...{nn}", "first").linalg_work("2/3"));
  f.add("linalg_lu",
        rows_first("...{mn}->...{mm},...{m}{k:min(m,n)},...{kn}", "first")
            .linalg_work("2/3"));
  f.add({"linalg_matrix_power", "matrix_power"},
        mapped("...{nn}->...{nn}").linalg_work("n").strided("matrix_power"));
  f.add({"linalg_matrix_exp", "matrix_exp"},
        in_order(rows_first("...{nn}->...{nn}", "first").linalg_work("16")));
  f.add({"linalg_pinv", "pinverse"}, form("with_tolerances(nm)")
                                         .refine("unread_tolerances()")
                                         .linalg_work("23"));
  f.add("linalg_matrix_rank", form("with_tolerances()")
                                  .refine("unread_tolerances()")
                                  .typed(DType::kI64)
                                  .linalg_work("8/3"));
  f.add("nuclear_norm.default",
        mapped("if keepdim: ...{mn}->...__ | ...{mn}->...")
            .typed("real(first)")
            .linalg_work("8/3"));
  f.add("linalg_cond",
        rows_first("...{mn}->...", "real(first)").linalg_work("8/3"));
  f.add({"linalg_vander", "vander"}, mapped(kVander));
  // The memory order of the matrix decides whether its factors are those of the
  // transposed matrix. The gradients depend on that choice.
  f.add("_linalg_det",
        in_order(matrices("...{nn}->...,...{nn},...{n}", "first,first,i32")
                     .linalg_work("2/3")));
  f.add({"linalg_det", "det", "logdet"},
        rows_first("...{nn}->...", "first").linalg_work("2/3"));
  f.add("_linalg_slogdet", in_order(matrices("...{nn}->...,...,...{nn},...{n}",
                                             "first,real(first),first,i32")
                                        .linalg_work("2/3")));
  f.add({"linalg_slogdet", "slogdet"},
        rows_first("...{nn}->...,...", "first,real(first)").linalg_work("2/3"));
  f.add("_linalg_eigh", matrices(kEigh, "real(first),first").linalg_work("9"));
  f.add("linalg_eigh", matrices("...{nn}->...{n},...{nn}", "real(first),first")
                           .linalg_work("9"));
  f.add("linalg_eigvalsh",
        rows_first("...{nn}->...{n}", "real(first)").linalg_work("4/3"));
  f.add("linalg_eig",
        matrices("...{nn}->...{n},...{nn}", "complex(first),complex(first)")
            .linalg_work("25"));
  f.add("linalg_eigvals",
        rows_first("...{nn}->...{n}", "complex(first)").linalg_work("10"));
  f.add({"_linalg_svd", "linalg_svd"},
        mapped(kSvd).typed("first,real(first),first").linalg_work("21"));
  f.add(
      "linalg_svdvals",
      rows_first("...{mn}->...{k:min(m,n)}", "real(first)").linalg_work("8/3"));
  f.add("linalg_qr", mapped(kQr)
                         .one_of("mode", {"reduced", "complete", "r"})
                         .typed("first,first")
                         .linalg_work("8/3"));
  f.add("geqrf", matrices("...{mn}->...{mn},...{k:min(m,n)}", "first,first")
                     .linalg_work("4/3"));
  f.add("linalg_lu_factor_ex",
        matrices("...{mn}->...{mn},...{k:min(m,n)},...", "first,i32,i32")
            .linalg_work("2/3"));
  f.add("_lu_with_info",
        matrices("...{mn}->...{mn},...{k:min(m,n)},...", "first,i32,i32"));
  f.add("linalg_lu_factor",
        matrices("...{mn}->...{mn},...{k:min(m,n)}", "first,i32")
            .linalg_work("2/3"));
  f.add("lu_unpack", mapped(kLuUnpack).typed("first,first,first"));
  f.add("svd",
        mapped(kOldSvd).typed("first,real(first),first").linalg_work("21"));
  f.add("qr", mapped(kOldQr).typed("first,first").linalg_work("8/3"));
  f.add("linalg_ldl_factor",
        matrices("...{nn}->...{nn},...{n}", "first,i32").linalg_work("1/3"));
  f.add("linalg_ldl_factor_ex",
        matrices("...{nn}->...{nn},...{n},...", "first,i32,i32")
            .linalg_work("1/3"));
}

}  // namespace shardprop
