#include "reference/parts.h"

#include <utility>

namespace shardprop::reference {

Tensor part_of(const Tensor& whole, int dim, std::int64_t start,
               std::int64_t length, std::int64_t step) {
  const auto d = static_cast<std::size_t>(dim);
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

}  // namespace shardprop::reference
