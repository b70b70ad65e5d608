// Returns the memory range of a tensor, for checks of overlap.
#pragma once

#include <shardprop/collective/local_tensor.h>

#include <cstdint>

#include "base/index.h"

namespace shardprop::collective {

struct ByteRange {
  std::uintptr_t first = 0;
  std::uintptr_t end = 0;  // equal to `first` for an empty tensor
};

// The range from the first byte of an element to the byte after the last.
// Ranges of interleaved views overlap even if the views share no element.
inline ByteRange byte_range(const LocalTensor& tensor) {
  const auto at = reinterpret_cast<std::uintptr_t>(tensor.data());
  if (tensor.numel() == 0) return {at, at};
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (int d = 0; d < tensor.rank(); ++d) {
    const std::int64_t reach =
        (tensor.size(d) - 1) * tensor.strides()[index(d)];
    (reach < 0 ? low : high) += reach;
  }
  const std::int64_t item = item_size(tensor.dtype());
  return {at + static_cast<std::uintptr_t>(low * item),
          at + static_cast<std::uintptr_t>((high + 1) * item)};
}

}  // namespace shardprop::collective
