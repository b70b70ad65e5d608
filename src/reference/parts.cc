#include "reference/parts.h"

#include <algorithm>
#include <utility>

#include "base/index.h"

namespace shardprop::reference {

Tensor part_of(const Tensor& whole, int dim, std::int64_t start,
               std::int64_t length, std::int64_t step) {
  const auto d = index(dim);
  Dims shape = whole.shape();
  Dims strides = whole.strides();
  const std::int64_t offset = length == 0 ? 0 : start * strides[d];
  shape[d] = length;
  strides[d] *= step;
  return whole.seen_as(std::move(shape), std::move(strides), offset);
}

Tensor element_of(const Tensor& whole, int dim, std::int64_t at) {
  const Tensor part = part_of(whole, dim, at, 1);
  Dims shape = part.shape();
  Dims strides = part.strides();
  shape.erase(shape.begin() + dim);
  strides.erase(strides.begin() + dim);
  return part.seen_as(std::move(shape), std::move(strides));
}

Tensor diagonal_of(const Tensor& whole, int a, int b, std::int64_t offset,
                   Dims shape) {
  const Dims& steps = whole.strides();
  const std::int64_t along_a = steps[index(a)];
  const std::int64_t along_b = steps[index(b)];
  Dims strides;
  for (int d = 0; d < whole.rank(); ++d) {
    if (d != a && d != b) strides.push_back(steps[index(d)]);
  }
  strides.push_back(along_a + along_b);
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  const std::int64_t begin = empty         ? 0
                             : offset >= 0 ? offset * along_b
                                           : -offset * along_a;
  return whole.seen_as(std::move(shape), std::move(strides), begin);
}

}  // namespace shardprop::reference
