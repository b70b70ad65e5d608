// Evaluates inverse, determinant, Cholesky factor and solutions of square
// matrices (Eigen).

#include "reference/kernels.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include <algorithm>

#include "base/index.h"

namespace shardprop::reference {
namespace {

using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Returns the matrices in the last two dims, concatenated.
std::vector<Matrix> matrices_of(const Tensor& tensor) {
  require(tensor.rank() >= 2, "the operand holds no matrices");
  if (domain_of(tensor.dtype()) != Domain::kReal) {
    throw NoKernel{"matrices of anything but floats"};
  }
  const auto batch = index(tensor.rank() - 2);
  const std::int64_t rows = tensor.shape()[batch];
  const std::int64_t columns = tensor.shape()[batch + 1];
  const std::vector<double> all = values<double>(tensor);
  // A tensor without elements may have matrices of 0 x 0, whose determinant is
  // 1.
  const std::int64_t count = product(std::span(tensor.shape()).first(batch));
  std::vector<Matrix> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.emplace_back(Eigen::Map<const Matrix>(all.data() + i * rows * columns,
                                              rows, columns));
  }
  return out;
}

template <class F>
Kernel of_matrices(F f) {
  return [f](const Call& call) -> std::vector<Tensor> {
    std::vector<double> out;
    for (const Matrix& a : matrices_of(call.first_value())) {
      require(a.rows() == a.cols(), "a matrix is not square");
      const Matrix made = f(a);
      out.insert(out.end(), made.data(), made.data() + made.size());
    }
    return {call.made(out)};
  };
}

Matrix inverse(const Matrix& a) {
  const Eigen::PartialPivLU<Matrix> factors(a);
  require(factors.determinant() != 0, "a matrix has no inverse");
  return factors.inverse();
}

Matrix determinant(const Matrix& a) {
  return Matrix::Constant(1, 1, a.determinant());
}

// Factors the requested triangle; the other one is not read.
Matrix cholesky(const Matrix& a, bool upper) {
  const Eigen::LLT<Matrix> factors(upper ? Matrix(a.transpose()) : a);
  require(factors.info() == Eigen::Success,
          "a matrix is not positive definite");
  return upper ? Matrix(factors.matrixU()) : Matrix(factors.matrixL());
}

// Returns one right side for each matrix; it is a vector if its shape has one
// dim fewer.
std::vector<Matrix> right_sides(const Tensor& left, const Tensor& right) {
  const Dims& of_left = left.shape();
  const bool is_vector =
      right.rank() == 1 ||
      (right.rank() == left.rank() - 1 &&
       std::equal(right.shape().begin(), right.shape().end(), of_left.begin()));
  if (!is_vector) return matrices_of(right);
  Dims columns = right.shape();
  columns.push_back(1);
  const Tensor dense = contiguous(right);
  return matrices_of(dense.seen_as(columns, contiguous_strides(columns)));
}

std::vector<Tensor> solve(const Call& call) {
  const std::vector<Matrix> left = matrices_of(call.value("A"));
  const std::vector<Matrix> right =
      right_sides(call.value("A"), call.value("B"));
  if (left.size() != right.size() || !call.boolean_or("left", true)) {
    throw NoKernel{"matrices that broadcast, or stand on the right"};
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Matrix x = left[i].partialPivLu().solve(right[i]);
    out.insert(out.end(), x.data(), x.data() + x.size());
  }
  return {call.made(out)};
}

}  // namespace

void add_linear_algebra(Kernels& k) {
  k.add({"inverse", "linalg_inv"}, of_matrices(inverse));
  k.add({"det", "linalg_det"}, of_matrices(determinant));
  k.add({"linalg_cholesky"}, [](const Call& call) {
    const bool upper = call.boolean_or("upper", false);
    return of_matrices([upper](const Matrix& a) { return cholesky(a, upper); })(
        call);
  });
  k.add({"linalg_solve"}, solve);
}

}  // namespace shardprop::reference
