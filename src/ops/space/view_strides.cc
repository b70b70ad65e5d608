#include "ops/space/view_strides.h"

#include "base/index.h"
#include "ops/op_call.h"

#include <algorithm>

namespace shardprop {

// The algorithm is that of at::detail::computeStride (ATen/TensorUtils.cpp). A
// run is a sequence of dims of `self` that are contiguous in memory. Each run,
// from the innermost, is matched with dims of `shape` that have as many
// elements.
std::optional<Dims> view_strides(const TensorMeta& self, const Dims& shape) {
  if (self.numel() == 0) {
    return self.shape() == shape
               ? self.strides()
               : contiguous_strides({shape.data(), shape.size()});
  }
  Dims strides(shape.size(), 1);
  if (self.rank() == 0) return strides;
  std::size_t next = shape.size();  // dims of shape from here on have strides
  std::int64_t base = self.strides().back();
  std::int64_t run = 1;   // elements of the current run of self
  std::int64_t seen = 1;  // elements of the matching run of shape
  for (std::size_t dim = self.shape().size(); dim-- > 0;) {
    run *= self.shape()[dim];
    const bool ends = dim == 0 || (self.shape()[dim - 1] != 1 &&
                                   self.strides()[dim - 1] != run * base);
    if (!ends) continue;
    while (next > 0 && (seen < run || shape[next - 1] == 1)) {
      --next;
      strides[next] = seen * base;
      seen *= shape[next];
    }
    if (seen != run) return std::nullopt;
    if (dim > 0) {
      base = self.strides()[dim - 1];
      run = 1;
      seen = 1;
    }
  }
  if (next != 0) return std::nullopt;
  return strides;
}

bool is_reshaped_view(const TensorMeta& self, const TensorMeta& result) {
  if (self.dtype() != result.dtype() || self.numel() != result.numel()) {
    return false;
  }
  // A tensor without elements needs no copy.
  if (self.numel() == 0) return true;
  const std::optional<Dims> strides = view_strides(self, result.shape());
  if (!strides) return false;
  for (int dim = 0; dim < result.rank(); ++dim) {
    const auto d = index(dim);
    if (result.size(dim) != 1 && result.strides()[d] != (*strides)[d]) {
      return false;
    }
  }
  return true;
}

std::int64_t slice_length(std::int64_t size, std::optional<std::int64_t> start,
                          std::optional<std::int64_t> end, std::int64_t step) {
  require(step > 0, "a step is not positive");
  const auto bound = [&](std::int64_t at) {
    if (at < 0) at = at < -size ? 0 : at + size;
    return std::min(at, size);
  };
  const std::int64_t first = bound(start.value_or(0));
  const std::int64_t last = std::max(bound(end.value_or(size)), first);
  const std::int64_t length = last - first;
  return length / step + (length % step != 0 ? 1 : 0);
}

}  // namespace shardprop
