// This file defines solutions of equations, and products with the results of a
// factorisation. The dims of matrices are blocked; batches are sharded, and so
// are right sides if they are columns.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/linalg/matrices.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"
#include "ops/rules/fixed_notation.h"
#include "ops/space/view_strides.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

using namespace linear_algebra;  // NOLINT(google-build-using-namespace)

// Returns whether the right side has one vector for each matrix.
bool solves_vectors(const OpCall& call) {
  const TensorMeta& a = call.tensor("A");
  const TensorMeta& b = call.tensor("B");
  Dims batch = a.shape();
  if (!batch.empty()) batch.pop_back();
  return b.rank() == 1 || (a.rank() - 1 == b.rank() && b.shape() == batch);
}

// Returns the term of the right side, or of the solution.
Term right_side(const OpCall& call) {
  Term term = Term().leading();
  if (solves_vectors(call)) return term.full({'n'});
  return call.boolean_or("left", true) ? term.full({'n'}).add('r')
                                       : term.add('r').full({'n'});
}

// A right side of columns gives a solution whose columns are contiguous.
Term solution(const OpCall& call) {
  Term term = right_side(call);
  if (call.boolean_or("left", true)) term.order = ResultOrder::kColumnMajor;
  return term;
}

Notation solve_notation(const OpCall& call) {
  static const Notation kRest =
      fixed_notation("...{nn},->,...{nn}:column_major,...{n},...");
  Notation notation = kRest;
  notation.inputs[1] = right_side(call);
  notation.outputs[0] = solution(call);
  return notation;
}

// A right side with one dim less than the matrices holds vectors if its shape
// equals the batch's. A part of the batch may match even if the full batch does
// not.
void keep_meaning(const OpCall& call, IndexSpace& space) {
  const TensorMeta& a = call.tensor("A");
  if (a.rank() - 1 != call.tensor("B").rank() || solves_vectors(call)) return;
  for (Factor& factor : space.factors) {
    factor.kind = FactorKind::kBlocked;
    factor.reason = "a part of the batch would make the right side vectors";
  }
}

// The solution is linear in the right side; the factors do not depend on it.
void linear_in_right_side(const OpCall& call, IndexSpace& space) {
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    std::vector<std::optional<ReduceOp>> outputs(space.outputs.size());
    inputs[call.operand("B")] = kind;
    nth(outputs, 0) = kind;
    add_linearity(call, space, std::move(inputs), std::move(outputs));
  }
}

// A right side is solved column by column; each rank needs at least one column.
OpDefinition by_column(OpDefinition row, std::string_view right_side) {
  return std::move(row).linear_in(right_side).nonempty("r");
}

Notation solve_ex_notation(const OpCall& call) {
  const Dims& a = call.tensor("A").shape();
  const Dims& b = call.tensor("B").shape();
  const bool alike = a.size() == b.size() && a.size() >= 2 &&
                     std::equal(a.begin(), a.end() - 2, b.begin());
  if (!alike && !solves_vectors(call)) {
    call_not_stated("of batches that broadcast the info is not stated");
  }
  return {{Term().leading().full({'n', 'n'}), right_side(call)},
          {solution(call), Term().leading()},
          {},
          {}};
}

// `LeastSquares` describes the results of least squares. The right side is one
// vector for each matrix, or several. The driver determines whether there are
// residuals, ranks and singular values. A call without a driver has that of the
// CPU, unless its results are known.
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

Notation least_squares_notation(const OpCall& call) {
  const LeastSquares of = least_squares(call);
  const Term batch = Term().leading();
  const Term none = Term().full({'z'});
  Term right = Term(batch).full({'m'});
  Term made = Term(batch).full({'n'});
  Term residuals = Term(batch);
  if (of.vectors) {
    residuals.full({'o'});
  } else {
    right.add('r');
    made.add('r');
    residuals.add('r');
  }
  return {{Term(batch).full({'m', 'n'}), right},
          {made, of.residuals ? residuals : none, of.ranks ? batch : none,
           of.values ? Term(batch).full({'k'}) : none},
          {{'z'}, {'o', StatedSize::Kind::kNumber, 1}},
          {}};
}

// The solutions are stored column by column, in memory of the size of the right
// sides.
OpDefinition least_squares_form() {
  const OpDefinition notation =
      mapped("least_squares()", least_squares_notation, side);
  return custom("least_squares()", [notation](const OpCall& call) {
    const LeastSquares of = least_squares(call);
    const TensorMeta& self = call.first();
    Dims held = self.shape();
    held.pop_back();
    held.back() = std::max(from_end(call, 2), from_end(call, 1));
    if (!of.vectors) {
      held.insert(held.end() - 1, call.tensor("b").shape().back());
    }
    Dims strides = make_meta(held, DType::kF32).strides();
    if (!of.vectors) {
      std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    }
    BoundForm bound = notation.bind(call);
    bound.results[0]->strides = std::move(strides);
    return bound;
  });
}

// The proofs refute same_without("r"): values differ, and the kernel can die.
OpDefinition solved_by_least_squares() {
  return form("least_squares()")
      .typed("first,real(first),i64,real(first)")
      .linalg_work("4/3", "4");
}

// Two tensors broadcast; the dim of the three components is blocked.
Notation cross_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const int rank = self.rank();
  int dim = 0;
  if (call.op().int_arg("dim")) {
    dim = call.dim("dim", rank);
  } else {
    while (dim + 1 < rank && size_of(self, dim) != 3) ++dim;
  }
  const TensorMeta& other = call.tensor("other");
  require(other.rank() == rank, "the operands differ in rank");
  require(rank > 0 && size_of(self, dim) == 3 && size_of(other, dim) == 3,
          "a cross product has three components");
  return {broadcast_terms({&self, &other}, {dim}),
          {term_of_dims(rank, {dim})},
          {},
          {}};
}

// --- Tensors as matrices: some of their dims are rows, the others columns ---

// Returns a term of full dims.
Term full_dims(const std::vector<int>& dims) {
  Term term;
  for (const int dim : dims) term.add(FactorName::of_dim(dim), DimUse::kFull);
  return term;
}

std::vector<int> all_dims(int rank) {
  std::vector<int> dims(index(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

std::int64_t elements(const Dims& shape, int from, int to) {
  std::int64_t count = 1;
  for (int d = from; d < to; ++d) {
    count = multiply_sizes(count, shape[index(d)]);
  }
  return count;
}

int row_dims(const OpCall& call) {
  const TensorMeta& self = call.first();
  const std::int64_t rows = call.integer("ind");
  require(rows > 0 && rows <= self.rank(), "`ind` is out of range");
  const auto split = static_cast<int>(rows);
  require(elements(self.shape(), 0, split) ==
              elements(self.shape(), split, self.rank()),
          "the dims are not those of a square matrix");
  return split;
}

Notation inverse_notation(const OpCall& call) {
  const int rows = row_dims(call);
  std::vector<int> dims = all_dims(call.first().rank());
  const Term self = full_dims(dims);
  std::rotate(dims.begin(), dims.begin() + rows, dims.end());
  return {{self}, {full_dims(dims)}, {}, {}};
}

// Returns the strides of LAPACK's inverse, viewed as a tensor.
Dims inverse_strides(const OpCall& call, const Dims& shape, DType dtype) {
  const std::int64_t side = elements(call.first().shape(), 0, row_dims(call));
  const auto strides = view_strides(
      make_meta({side, side}, {1, std::max<std::int64_t>(side, 1)}, dtype),
      shape);
  return strides.value_or(make_meta(shape, dtype).strides());
}

// The columns are the dims that the right side does not have.
Notation solution_notation(const OpCall& call) {
  const TensorMeta& self = call.first();
  const int rows = call.tensor("other").rank();
  require(rows <= self.rank(), "the right side has more dims than the tensor");
  std::vector<int> dims = all_dims(self.rank());
  std::size_t moved = 0;
  if (const auto last = call.op().ints_arg("dims")) {
    for (const std::int64_t named : *last) {
      const auto at =
          std::find(dims.begin(), dims.end(), wrap_dim(named, self.rank()));
      require(index(at - dims.begin()) < dims.size() - moved,
              "a dim appears twice in `dims`");
      std::rotate(at, at + 1, dims.end());
      ++moved;
    }
  }
  const std::vector<int> columns(dims.begin() + rows, dims.end());
  std::int64_t unknowns = 1;
  for (const int dim : columns) {
    unknowns = multiply_sizes(unknowns, size_of(self, dim));
  }
  require(unknowns == call.tensor("other").numel() &&
              multiply_sizes(unknowns, unknowns) == self.numel(),
          "the dims are not those of a square matrix");
  return {{full_dims(all_dims(self.rank())), Term::replicated()},
          {full_dims(columns)},
          {},
          {}};
}

}  // namespace

void words_of_solves(RuleWords& words) {
  words.form(least_squares_form());
  words.form(mapped("solve()", solve_notation));
  words.modifier("linear_in_right_side()", linear_in_right_side);
  words.modifier("keep_meaning()", keep_meaning);
  words.form(mapped("solve_ex()", solve_ex_notation));
  words.form(mapped("tensorinv(ind)", inverse_notation));
  words.form(mapped("tensorsolve(dims)", solution_notation));
  words.form(mapped("cross()", cross_notation));
  words.strides("inverse", inverse_strides);
}

void define_solves(Family f) {
  f.add({"linalg_householder_product", "orgqr"},
        matrices("...{mn},...{k}->...{mn}", "first").linalg_work("4/3"));
  f.add("ormqr", mapped("..._{k},..._,...{mn}->...{mn}")
                     .strided("column_major")
                     .linear_in("input3"));
  f.add("linalg_ldl_solve", by_column(mapped("...{nn},...{n},...{n}r->...{n}r")
                                          .typed("first")
                                          .strided("column_major"),
                                      "B")
                                .linalg_work("0", "2"));
  f.add("linalg_lu_solve", by_column(mapped("if left: ...{nn},...{n},...{n}r->"
                                            "...{n}r:column_major | "
                                            "...{nn},...{n},...r{n}->...r{n}"),
                                     "B")
                               .linalg_work("0", "2"));
  f.add("cholesky_solve", by_column(mapped("...{n}r,...{nn}->...{n}r")
                                        .typed("first")
                                        .strided("column_major"),
                                    "self")
                              .linalg_work("0", "2"));
  f.add("linalg_solve_triangular",
        by_column(mapped("if left: ...{nn},...{n}r->...{n}r | "
                         "...{nn},...r{n}->...r{n}")
                      .strided("column_major"),
                  "B")
            .linalg_work("0", "1"));
  f.add("triangular_solve", mapped("...{n}r,...{nn}->...{n}r,...{nn}")
                                .typed("first,first")
                                .strided("column_major")
                                .same_without("r")
                                .linalg_work("0", "1"));
  const auto solving = [](OpDefinition rule) {
    return std::move(rule)
        .refine("linear_in_right_side()")
        .refine("keep_meaning()")
        .linalg_work("2/3", "2");
  };
  f.add(
      "_linalg_solve_ex",
      solving(form("solve()").typed("first,first,i32,i32").same_without("r")));
  f.add({"linalg_solve"}, solving(form("solve()").typed("first")));
  f.add("linalg_solve_ex",
        solving(form("solve_ex()").typed("first,i32").same_without("r")));
  f.add(
      "lu_solve",
      by_column(mapped("...{n}r,...{nn},...{n}->...{n}r:column_major"), "self")
          .linalg_work("0", "2"));
  f.add("linalg_lstsq", solved_by_least_squares());
  constexpr std::string_view kAsMatrix =
      "replicated: its dims are the rows and columns of one matrix";
  f.add("linalg_tensorinv", form("tensorinv(ind)").strided("inverse"),
        kAsMatrix);
  f.add("linalg_tensorsolve", form("tensorsolve(dims)").linear_in("other"),
        kAsMatrix);
  f.add({"linalg_cross", "cross"}, form("cross()").promoted().multilinear());
}

}  // namespace shardprop
