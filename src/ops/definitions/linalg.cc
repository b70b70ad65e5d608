// Linear algebra: matrices stay whole, batches of them are cut.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/linalg_work.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// LAPACK's matrices: the last two dims column by column.
Dims column_major(const OpCall& call, const Dims& shape, DType dtype) {
  Dims strides = make_meta(shape, dtype).strides();
  const std::size_t rank = shape.size();
  if (static_cast<int>(rank) != call.first().rank() || rank < 2) return strides;
  strides[rank - 2] = 1;
  strides[rank - 1] = std::max<std::int64_t>(shape[rank - 2], 1);
  return strides;
}

DType complex_of(DType dtype) {
  return dtype == DType::kF64   ? DType::kC128
         : dtype == DType::kF32 ? DType::kC64
                                : dtype;
}

// The dtype of each result: `s`elf, `r`eal part, `c`omplex, `i`32.
OpDefinition::TypeOf types(std::string_view letters) {
  return
      [letters = std::string(letters)](const OpCall& call, std::size_t result) {
        const DType own = call.first().dtype();
        switch (letters[std::min(result, letters.size() - 1)]) {
          case 'r':
            return real_dtype(own);
          case 'c':
            return complex_of(own);
          case 'i':
            return DType::kI32;
          default:
            return own;
        }
      };
}

std::int64_t from_end(const OpCall& call, int back) {
  const TensorMeta& self = call.first();
  require(self.rank() >= back, "the operand holds no matrices");
  return self.size(self.rank() - back);
}

// k: the smaller side of a matrix. u, v: columns of U and rows of Vh. l: as
// many rows of a factor as there are pivots.
std::int64_t side(const OpCall& call, char letter) {
  const std::int64_t rows = from_end(call, 2);
  const std::int64_t columns = from_end(call, 1);
  const bool full = call.boolean_or("full_matrices", false) ||
                    (call.has("mode") &&
                     call.op().string_arg("mode").value_or("") == "complete");
  if (letter == 'u') return full ? rows : std::min(rows, columns);
  if (letter == 'v') return full ? columns : std::min(rows, columns);
  return std::min(rows, columns);
}

// The form, with what is computed of each matrix.
template <class... Parts>
OpDefinition counted(Parts&&... parts) {
  return mapped(std::forward<Parts>(parts)...).refine("", count_linalg_work);
}

OpDefinition matrices(std::string_view notation, std::string_view letters) {
  return counted(notation, side).typed(types(letters)).strided(column_major);
}
OpDefinition rows_first(std::string_view notation, std::string_view letters) {
  return counted(notation, side).typed(types(letters));
}

// Whether the right side is a vector for each matrix.
bool solves_vectors(const OpCall& call) {
  const TensorMeta& a = call.tensor("A");
  const TensorMeta& b = call.tensor("B");
  Dims batch = a.shape();
  if (!batch.empty()) batch.pop_back();
  return b.rank() == 1 || (a.rank() - 1 == b.rank() && b.shape() == batch);
}

std::string solve_notation(const OpCall& call) {
  const bool left = call.boolean_or("left", true);
  const std::string x = solves_vectors(call) ? "...[n]"
                        : left               ? "...[nr]"
                                             : "...[rn]";
  return "...[nn]," + x + "->" + x + (left ? "^" : "") + ",...[nn]^,...[n],...";
}

// A right side of one dim less than the matrices is vectors where their batch
// has its shape: a part of the batch may, where the whole has not.
void keep_meaning(const OpCall& call, IndexSpace& space) {
  const TensorMeta& a = call.tensor("A");
  if (a.rank() - 1 != call.tensor("B").rank() || solves_vectors(call)) return;
  for (Factor& factor : space.factors) {
    factor.kind = FactorKind::kBlocked;
    factor.reason = "a part of the batch would make the right side vectors";
  }
}

// The solution is linear in the right side, the factors do not read it.
void linear_in_right_side(const OpCall& call, IndexSpace& space) {
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    std::vector<std::optional<ReduceOp>> outputs(space.outputs.size());
    inputs[call.operand("B")] = kind;
    outputs[0] = kind;
    add_linearity(call, space, std::move(inputs), std::move(outputs));
  }
}

// Rows and columns add up, each rank its part of the diagonal.
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

// A right side is solved column by column; no rank may be left without one.
OpDefinition by_column(OpDefinition row, std::string_view right_side) {
  return std::move(row)
      .linear_in(right_side)
      .refine("", [](const OpCall&, IndexSpace& space) {
        for (Factor& factor : space.factors) {
          if (factor.letter == 'r') factor.least = 1;
        }
      });
}

// The right side stands to the right of the matrix, or to its left.
std::string side_notation(const OpCall& call) {
  return call.boolean_or("left", true) ? "...[n]r" : "...r[n]";
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

// As numpy once had it: V and not its transpose.
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

// Factors and pivots apart; of what is not asked for, vectors of nothing.
std::string lu_unpack_notation(const OpCall& call) {
  const bool data = call.boolean_or("unpack_data", true);
  const bool pivots = call.boolean_or("unpack_pivots", true);
  return std::string("...[mn],...[p]->") + (pivots ? "...[mm]" : "[z]") +
         (data ? ",...[mk],...[kn]" : ",[z],[z]");
}

std::string solve_ex_notation(const OpCall& call) {
  const Dims& a = call.tensor("A").shape();
  const Dims& b = call.tensor("B").shape();
  const bool alike = a.size() == b.size() && a.size() >= 2 &&
                     std::equal(a.begin(), a.end() - 2, b.begin());
  if (!alike && !solves_vectors(call)) {
    call_not_stated("of batches that broadcast the info is not stated");
  }
  const bool left = call.boolean_or("left", true);
  const std::string x = solves_vectors(call) ? "...[n]"
                        : left               ? "...[nr]"
                                             : "...[rn]";
  return "...[nn]," + x + "->" + x + (left ? "^" : "") + ",...";
}

std::string eigh_notation(const OpCall& call) {
  return call.boolean_or("compute_v", true) ? "...[nn]->...[n],...[nn]"
                                            : "...[nn]->...[n],[z]";
}

// Two tensors broadcast; the dim of the three components stays whole.
std::string cross_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const int rank = self.rank();
  int dim = 0;
  if (call.base_name() == "linalg_cross" || call.op().int_arg("dim")) {
    dim = call.dim("dim", rank);
  } else {
    while (dim + 1 < rank && self.size(dim) != 3) ++dim;
  }
  const TensorMeta& other = call.tensor("other");
  require(other.rank() == rank, "the operands differ in rank");
  require(rank > 0 && self.size(dim) == 3 && other.size(dim) == 3 && rank <= 26,
          "a cross product has three components");
  const auto terms = broadcast_terms({&self, &other}, {dim});
  return terms[0] + ',' + terms[1] + "->" + dims_notation(rank, {dim});
}

// Without a number of powers there are as many as a rank has elements.
std::string vander_notation(const OpCall& call) {
  return call.op().int_arg("N") ? "...n->...n[c]" : "...[n]->...[n][c]";
}

// Least squares: a vector for each matrix, or some. Whether there are
// residuals, ranks and singular values the driver says; that of a call with
// none is CPUs', unless its results are known.
struct LeastSquares {
  bool vectors;
  bool residuals;
  bool ranks;
  bool values;
};

bool is_produced(const OpSchema& op, std::size_t result, bool otherwise) {
  if (op.outputs.size() <= result) return otherwise;
  return op.outputs[result].shape() != Dims{0};
}

LeastSquares least_squares(const OpCall& call) {
  const TensorMeta& self = call.first();
  const TensorMeta& right = call.tensor("b");
  const std::int64_t rows = from_end(call, 2);
  const bool is_tall = rows > from_end(call, 1);
  const auto driver = call.op().string_arg("driver").value_or("gelsy");
  const bool by_values = driver == "gelsd" || driver == "gelss";
  require(by_values || driver == "gels" || driver == "gelsy",
          "`driver` is not gels, gelsy, gelsd or gelss");
  if (by_values && is_tall && call.op().outputs.empty()) {
    call_not_stated("matrices of less than full rank have no residuals");
  }
  const bool vectors = right.rank() == self.rank() - 1;
  Dims batch = self.shape();
  batch.pop_back();
  batch.pop_back();
  Dims sides = right.shape();
  if (!vectors) {
    require(right.rank() == self.rank(), "the right side is of another rank");
    sides.pop_back();
  }
  require(!sides.empty() && sides.back() == rows,
          "the right side does not have the rows of the matrices");
  sides.pop_back();
  if (sides != batch) call_not_stated("batches that broadcast");
  const OpSchema& op = call.op();
  return {
      .vectors = vectors,
      .residuals = is_tall && is_produced(op, 1, driver == "gels" || by_values),
      .ranks = is_produced(op, 2, driver != "gels"),
      .values = is_produced(op, 3, by_values)};
}

std::string least_squares_notation(const OpCall& call) {
  const LeastSquares of = least_squares(call);
  return std::string("...[mn],") +
         (of.vectors ? "...[m]->...[n]," : "...[mr]->...[nr],") +
         (!of.residuals ? "[z]"
          : of.vectors  ? "...[o]"
                        : "...[r]") +
         (of.ranks ? ",..." : ",[z]") + (of.values ? ",...[k]" : ",[z]");
}

std::int64_t least_squares_size(const OpCall& call, char letter) {
  return letter == 'z' ? 0 : letter == 'o' ? 1 : side(call, letter);
}

// The solutions lie column by column in what was as large as the right sides.
OpDefinition solved_by_least_squares() {
  const OpDefinition form =
      mapped("least_squares()", least_squares_notation, least_squares_size)
          .typed([](const OpCall& call, std::size_t i) {
            const DType own = call.first().dtype();
            return i == 0 ? own : i == 2 ? DType::kI64 : real_dtype(own);
          });
  return custom(form.text(),
                [form](const OpCall& call) {
                  const LeastSquares of = least_squares(call);
                  const TensorMeta& self = call.first();
                  Dims held = self.shape();
                  held.pop_back();
                  held.back() = std::max(from_end(call, 2), from_end(call, 1));
                  if (!of.vectors) {
                    held.insert(held.end() - 1,
                                call.tensor("b").shape().back());
                  }
                  Dims strides = make_meta(held, DType::kF32).strides();
                  if (!of.vectors) {
                    std::swap(strides[strides.size() - 1],
                              strides[strides.size() - 2]);
                  }
                  BoundForm bound = form.bind(call);
                  bound.results[0]->strides = std::move(strides);
                  return bound;
                })
      .typed(form.type_of())
      .refine("", count_linalg_work);
}

void define_factorisations(Family& f) {
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
  f.add("trace", einsum("[mn]->")
                     .typed(of_sum)
                     .linear_in("self")
                     .refine("", trace_adds_up)
                     .per_rank(kTrace));
  f.add({"linalg_matrix_exp", "matrix_exp"},
        rows_first("...[nn]->...[nn]", "s"));
  f.add({"linalg_pinv", "pinverse"}, counted("...[mn],...,...->...[nm]"));
  f.add("linalg_matrix_rank",
        counted("...[mn],...,...->...").typed(DType::kI64));
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
  f.add("_linalg_det", matrices("...[nn]->...,...[nn],...[n]", "ssi"));
  f.add({"linalg_det", "det", "logdet"}, rows_first("...[nn]->...", "s"));
  f.add("_linalg_slogdet", matrices("...[nn]->...,...,...[nn],...[n]", "srsi"));
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
  f.add("linalg_lu_factor_ex", matrices("...[mn]->...[mn],...[k],...", "sii"));
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

void define_solves(Family& f) {
  f.add({"linalg_householder_product", "orgqr"},
        matrices("...[mn],...[k]->...[mn]", "s"));
  f.add("ormqr",
        counted("...[_k],...[_],...[mn]->...[mn]").strided(column_major));
  f.add("linalg_ldl_solve",
        by_column(matrices("...[nn],...[n],...[n]r->...[n]r", "s"), "B"));
  f.add("linalg_lu_solve",
        by_column(counted("lu_solve()",
                          [](const OpCall& call) {
                            const std::string x = side_notation(call);
                            return "...[nn],...[n]," + x + "->" + x +
                                   (call.boolean_or("left", true) ? "^" : "");
                          }),
                  "B"));
  f.add("cholesky_solve",
        by_column(matrices("...[n]r,...[nn]->...[n]r", "s"), "self"));
  f.add("linalg_solve_triangular",
        by_column(counted("solve_triangular()",
                          [](const OpCall& call) {
                            const std::string x = side_notation(call);
                            return "...[nn]," + x + "->" + x;
                          })
                      .strided(column_major),
                  "B"));
  f.add("triangular_solve", matrices("...[nr],...[nn]->...[nr],...[nn]", "ss"));
  f.add("_linalg_solve_ex", counted("solve()", solve_notation)
                                .typed(types("ssii"))
                                .refine("", linear_in_right_side)
                                .refine("", keep_meaning));
  f.add({"linalg_solve"}, counted("solve()", solve_notation)
                              .typed(types("s"))
                              .refine("", linear_in_right_side)
                              .refine("", keep_meaning));
  f.add("linalg_solve_ex", counted("solve()", solve_ex_notation)
                               .typed(types("si"))
                               .refine("", linear_in_right_side)
                               .refine("", keep_meaning));
  f.add("lu_solve",
        by_column(counted("...[n]r,...[nn],...[n]->...[n]r^"), "self"));
  f.add("linalg_lstsq", solved_by_least_squares());
  f.add({"linalg_cross", "cross"},
        counted("cross()", cross_notation).promoted().multilinear());
}

}  // namespace

void define_linalg(Family f) {
  define_factorisations(f);
  define_solves(f);
}

}  // namespace shardprop
