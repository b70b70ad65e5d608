#include "reference/linalg/matrix_product.h"

#include <Eigen/Core>

#include <type_traits>

namespace shardprop::reference {

template <class T>
std::vector<T> batched_product(const std::vector<T>& a, const std::vector<T>& b,
                               const ProductSizes& s) {
  // Integers are multiplied as unsigned ones, for which wrapping is defined.
  using E =
      std::conditional_t<std::is_same_v<T, std::int64_t>, std::uint64_t, T>;
  using Matrix =
      Eigen::Matrix<E, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  std::vector<T> out(static_cast<std::size_t>(s.batch * s.rows * s.columns));
  if (out.empty() || s.summed == 0) return out;
  const auto* left = reinterpret_cast<const E*>(a.data());
  const auto* right = reinterpret_cast<const E*>(b.data());
  auto* result = reinterpret_cast<E*>(out.data());
  for (std::int64_t i = 0; i < s.batch; ++i) {
    Eigen::Map<Matrix>(result + i * s.rows * s.columns, s.rows, s.columns)
        .noalias() = Eigen::Map<const Matrix>(left + i * s.rows * s.summed,
                                              s.rows, s.summed) *
                     Eigen::Map<const Matrix>(right + i * s.summed * s.columns,
                                              s.summed, s.columns);
  }
  return out;
}

template std::vector<double> batched_product(const std::vector<double>&,
                                             const std::vector<double>&,
                                             const ProductSizes&);
template std::vector<std::int64_t> batched_product(
    const std::vector<std::int64_t>&, const std::vector<std::int64_t>&,
    const ProductSizes&);
template std::vector<Complex> batched_product(const std::vector<Complex>&,
                                              const std::vector<Complex>&,
                                              const ProductSizes&);

}  // namespace shardprop::reference
