#include "ops/definitions/linalg_work.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace shardprop {
namespace {

// `Work` counts operations of a matrix of m rows and n columns. `of_cubes` is
// per m * n * min(m, n); `of_columns` is per n * n and column of a right side.
// The counts follow Golub and Van Loan, Matrix Computations; iterative methods
// have a typical number of iterations.
struct Work {
  std::string_view name;
  double of_cubes;
  double of_columns = 0;
};

constexpr Work kWork[] = {
    {"cholesky", 1. / 3},
    {"linalg_cholesky", 1. / 3},
    {"linalg_cholesky_ex", 1. / 3},
    {"cholesky_inverse", 2. / 3},
    {"cholesky_solve", 0, 2},
    {"linalg_inv", 2},
    {"linalg_inv_ex", 2},
    {"inverse", 2},
    {"linalg_lu", 2. / 3},
    {"linalg_lu_factor", 2. / 3},
    {"linalg_lu_factor_ex", 2. / 3},
    {"linalg_lu_solve", 0, 2},
    {"lu_solve", 0, 2},
    {"linalg_ldl_factor", 1. / 3},
    {"linalg_ldl_factor_ex", 1. / 3},
    {"linalg_ldl_solve", 0, 2},
    {"_linalg_det", 2. / 3},
    {"linalg_det", 2. / 3},
    {"det", 2. / 3},
    {"logdet", 2. / 3},
    {"_linalg_slogdet", 2. / 3},
    {"linalg_slogdet", 2. / 3},
    {"slogdet", 2. / 3},
    {"_linalg_solve_ex", 2. / 3, 2},
    {"linalg_solve_ex", 2. / 3, 2},
    {"linalg_solve", 2. / 3, 2},
    {"linalg_solve_triangular", 0, 1},
    {"triangular_solve", 0, 1},
    {"geqrf", 4. / 3},
    {"linalg_qr", 8. / 3},
    {"qr", 8. / 3},
    {"linalg_householder_product", 4. / 3},
    {"orgqr", 4. / 3},
    {"linalg_lstsq", 4. / 3, 4},
    {"_linalg_eigh", 9},
    {"linalg_eigh", 9},
    {"linalg_eigvalsh", 4. / 3},
    {"linalg_eig", 25},
    {"linalg_eigvals", 10},
    {"_linalg_svd", 21},
    {"linalg_svd", 21},
    {"svd", 21},
    {"linalg_svdvals", 8. / 3},
    {"linalg_matrix_rank", 8. / 3},
    {"linalg_cond", 8. / 3},
    {"nuclear_norm", 8. / 3},
    {"linalg_pinv", 23},
    {"pinverse", 23},
    {"linalg_matrix_exp", 16},
    {"matrix_exp", 16},
};

// A power takes a product for each bit of the exponent.
double work_of_powers(const OpCall& call) {
  const auto n = static_cast<double>(call.integer("n"));
  return n < 0 ? 2 + 2 * std::log2(1 - n) : 2 * std::log2(1 + n);
}

// Returns the matrices; if there are right sides, the square ones.
const TensorMeta& matrices_of(const OpCall& call) {
  for (const char* name : {"A", "LU", "LD", "input2", "LU_data"}) {
    if (!call.has(name)) continue;
    if (const TensorMeta* meta = call.optional_tensor(name)) return *meta;
  }
  return call.first();
}

// Returns the number of columns of right sides that are not a factor.
double columns_of(const OpCall& call, const TensorMeta& matrices) {
  for (const char* name : {"B", "b"}) {
    const TensorMeta* right =
        call.has(name) ? call.optional_tensor(name) : nullptr;
    if (right == nullptr || right->rank() < matrices.rank()) continue;
    const bool left = call.boolean_or("left", true);
    return static_cast<double>(right->size(right->rank() - (left ? 1 : 2)));
  }
  if (call.base_name() == "triangular_solve") {
    return static_cast<double>(call.first().size(call.first().rank() - 1));
  }
  return 1;
}

}  // namespace

void count_linalg_work(const OpCall& call, IndexSpace& space) {
  const std::string_view name = call.base_name();
  const auto* found =
      std::find_if(std::begin(kWork), std::end(kWork),
                   [&](const Work& work) { return work.name == name; });
  const bool powers = name == "linalg_matrix_power" || name == "matrix_power";
  if (found == std::end(kWork) && !powers) return;
  const TensorMeta& matrices = matrices_of(call);
  if (matrices.rank() < 2) return;
  const auto rows = static_cast<double>(matrices.size(matrices.rank() - 2));
  const auto columns = static_cast<double>(matrices.size(matrices.rank() - 1));
  const double cubes = rows * columns * std::min(rows, columns);
  if (powers) {
    space.flops_per_point = work_of_powers(call) * cubes;
    return;
  }
  // Columns that are a factor have points of their own. The work on the matrix
  // is divided among these points.
  double own = 1;
  for (const Factor& factor : space.factors) {
    if (factor.letter == 'r') own = static_cast<double>(factor.size);
  }
  const double held = own > 1 ? 1 : columns_of(call, matrices);
  space.flops_per_point =
      found->of_cubes * cubes / own + found->of_columns * rows * columns * held;
}

}  // namespace shardprop
