#include "redistribute/exchange_bytes.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>

namespace shardprop::redistribute {
namespace {

std::int64_t overlap(const Intervals& a, const Intervals& b) {
  // Cut orders need not ascend, so every pair is looked at.
  std::int64_t common = 0;
  for (const Interval& x : a) {
    for (const Interval& y : b) {
      common += std::max(std::int64_t{0},
                         std::min(x.end, y.end) - std::max(x.begin, y.begin));
    }
  }
  return common;
}

}  // namespace

std::int64_t exchanged_bytes(const Layout& src, const Layout& dst,
                             const DeviceMesh& mesh, const TensorMeta& meta) {
  const std::int64_t item = item_size(meta.dtype());
  if (mesh.size() > kCountedRanks) {
    std::int64_t elements = 1;
    for (const std::int64_t size : max_local_shape(src, mesh, meta.shape())) {
      elements *= size;
    }
    return elements * item;
  }
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const Coordinate at = mesh.coordinate_at_index(i);
    const LocalRegion held = local_region(src, mesh, meta.shape(), at);
    const LocalRegion wanted = local_region(dst, mesh, meta.shape(), at);
    std::int64_t kept = 1;
    for (std::size_t d = 0; d < held.dims().size(); ++d) {
      kept *= overlap(held.dims()[d], wanted.dims()[d]);
    }
    most = std::max(most, held.numel() - kept);
  }
  return most * item;
}

}  // namespace shardprop::redistribute
