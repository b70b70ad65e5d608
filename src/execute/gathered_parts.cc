#include "execute/gathered_parts.h"

namespace shardprop::execute {
namespace {

struct PartOfDim {
  int dim = 0;
  Interval part;
};

// Returns the only dim in which the shard is smaller than `whole`, and its
// interval there.
std::optional<PartOfDim> part_of(const LocalRegion& shard,
                                 const LocalRegion& whole) {
  std::optional<PartOfDim> out;
  for (std::size_t d = 0; d < whole.dims().size(); ++d) {
    const Intervals& held = shard.dims()[d];
    const Intervals& all = whole.dims()[d];
    if (held.size() != 1 || all.size() != 1) return std::nullopt;
    if (held == all) continue;
    if (out || held[0].begin < all[0].begin || held[0].end > all[0].end) {
      return std::nullopt;
    }
    out = PartOfDim{static_cast<int>(d),
                    {held[0].begin - all[0].begin, held[0].end - all[0].begin}};
  }
  return out;
}

}  // namespace

std::optional<GatheredParts> gathered_parts(
    const RedistributeStep& step, const RankView& view,
    std::span<const Coordinate> members) {
  const auto region = [&](const Layout& layout, const Coordinate& at) {
    return local_region(layout, view.mesh, view.meta.shape(), at);
  };
  const LocalRegion wanted = region(step.dst, view.at);
  std::int64_t received = 0;
  std::optional<int> dim;
  GatheredParts out;
  for (const Coordinate& at : members) {
    const LocalRegion shard = region(step.src, at);
    out.parts.emplace_back();
    if (shard.empty()) continue;
    const auto part = part_of(shard, wanted);
    if (!part || (dim && *dim != part->dim)) return std::nullopt;
    dim = part->dim;
    out.parts.back() = part->part;
    received += shard.numel();
  }
  if (!dim || received != wanted.numel()) return std::nullopt;
  out.dim = *dim;
  return out;
}

}  // namespace shardprop::execute
