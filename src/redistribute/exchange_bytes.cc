#include "redistribute/exchange_bytes.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>

namespace shardprop::redistribute {
namespace {

std::int64_t overlap(const Intervals& a, const Intervals& b) {
  // The intervals may be in any order, so every pair is compared.
  std::int64_t common = 0;
  for (const Interval& x : a) {
    for (const Interval& y : b) {
      common += std::max(std::int64_t{0},
                         std::min(x.end, y.end) - std::max(x.begin, y.begin));
    }
  }
  return common;
}

std::int64_t product(const Dims& sizes) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) all *= size;
  return all;
}

}  // namespace

std::int64_t largest_shard(const Layout& layout, const DeviceMesh& mesh,
                           const TensorMeta& meta) {
  if (!layout.has_strided() || mesh.size() > kCountedRanks) {
    return max_local_elements(layout, mesh, meta.shape());
  }
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    most = std::max(most, product(local_shape(layout, mesh, meta.shape(),
                                              mesh.coordinate_at_index(i))));
  }
  return most;
}

std::int64_t exchanged_bytes(const Layout& src, const Layout& dst,
                             const DeviceMesh& mesh, const TensorMeta& meta) {
  const std::int64_t item = item_size(meta.dtype());
  if (mesh.size() > kCountedRanks) {
    return largest_shard(src, mesh, meta) * item;
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
