#include "redistribute/shards.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.h"

namespace shardprop::redistribute {

std::vector<Shard> shards_of(const TensorSpec& spec) {
  const DeviceMesh& mesh = spec.mesh();
  std::unordered_map<std::int64_t, std::size_t> index;
  std::vector<Shard> shards;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const Coordinate at = mesh.coordinate_at_index(i);
    Coordinate cut = at;
    for (int d = 0; d < mesh.ndim(); ++d) {
      if (!spec.placement(d).is_shard()) cut[static_cast<std::size_t>(d)] = 0;
    }
    const auto [found, made] =
        index.try_emplace(mesh.index_at(cut), shards.size());
    if (made) shards.push_back({local_region(spec, at), {}});
    shards[found->second].ranks.push_back(mesh.rank_at(at));
  }
  std::erase_if(shards,
                [](const Shard& shard) { return shard.region.empty(); });
  return shards;
}

std::size_t ShardIndex::PartsHash::operator()(const Parts& parts) const {
  return hash_range(0, parts);
}

ShardIndex::ShardIndex(std::span<const Shard> shards) {
  if (shards.empty()) return;
  const std::size_t rank = shards[0].region.dims().size();
  runs_.resize(rank);
  // The key is the tensor dim and the first element, because two shards hold
  // equal runs of a dim or have no element in common.
  std::vector<std::unordered_map<std::int64_t, std::int32_t>> known(rank);
  for (std::size_t s = 0; s < shards.size(); ++s) {
    Parts parts;
    for (std::size_t d = 0; d < rank; ++d) {
      const Intervals& held = shards[s].region.dims()[d];
      const auto [part, fresh] = known[d].try_emplace(
          held[0].begin, static_cast<std::int32_t>(known[d].size()));
      if (fresh) {
        for (const Interval& run : held) {
          runs_[d].push_back({run, part->second});
        }
      }
      parts.push_back(part->second);
    }
    shards_.emplace(std::move(parts), s);
  }
  for (std::vector<Run>& runs : runs_) {
    std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
      return a.elements.begin < b.elements.begin;
    });
  }
}

std::vector<std::int32_t> ShardIndex::parts(std::size_t dim,
                                            const Intervals& wanted) const {
  std::vector<std::int32_t> out;
  const std::vector<Run>& runs = runs_[dim];
  for (const Interval& want : wanted) {
    auto run = std::upper_bound(
        runs.begin(), runs.end(), want.begin,
        [](std::int64_t at, const Run& r) { return at < r.elements.end; });
    for (; run != runs.end() && run->elements.begin < want.end; ++run) {
      out.push_back(run->part);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::size_t> ShardIndex::overlapping(
    const LocalRegion& region) const {
  if (shards_.empty()) return {};
  std::vector<Parts> found{Parts{}};
  for (std::size_t d = 0; d < runs_.size(); ++d) {
    const std::vector<std::int32_t> of_dim = parts(d, region.dims()[d]);
    std::vector<Parts> longer;
    for (const Parts& start : found) {
      for (const std::int32_t part : of_dim) {
        longer.push_back(start);
        longer.back().push_back(part);
      }
    }
    found = std::move(longer);
  }
  std::vector<std::size_t> out;
  for (const Parts& key : found) {
    const auto shard = shards_.find(key);
    if (shard != shards_.end()) out.push_back(shard->second);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace shardprop::redistribute
