// Multiplies batches of matrices of row-major values (Eigen).
#pragma once

#include "reference/elements.h"

#include <cstdint>
#include <vector>

namespace shardprop::reference {

// [batch, rows, summed] by [batch, summed, columns] -> [batch, rows, columns].
struct ProductSizes {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t summed = 1;
  std::int64_t columns = 1;
};

// T is double, std::int64_t (wrapping) or Complex.
template <class T>
std::vector<T> batched_product(const std::vector<T>& a, const std::vector<T>& b,
                               const ProductSizes& sizes);

}  // namespace shardprop::reference
