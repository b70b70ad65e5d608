// Computes the least cost between layouts from the text of planner.h, without
// its code. It enumerates every layout, asks for every pair whether one
// collective leads from one to the other, and finds all paths by Floyd and
// Warshall. It is slow and simple on purpose.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardprop::testing {

inline constexpr std::int64_t kNoPath =
    std::numeric_limits<std::int64_t>::max() / 4;

// Returns all meshes of one to `dims` dims, each of size 1 to `size`.
inline std::vector<DeviceMesh> meshes_up_to(int dims, std::int64_t size) {
  std::vector<DeviceMesh> meshes;
  std::vector<std::vector<MeshDim>> shapes{{}};
  for (int d = 0; d < dims; ++d) {
    std::vector<std::vector<MeshDim>> longer;
    for (const auto& start : shapes) {
      for (std::int64_t n = 1; n <= size; ++n) {
        longer.push_back(start);
        longer.back().push_back({"d" + std::to_string(d), n});
        meshes.push_back(DeviceMesh::create(longer.back()).value());
      }
    }
    shapes = std::move(longer);
  }
  return meshes;
}

// Every way to write a layout whose placements are among `allowed` on mesh dims
// larger than 1 and R on the others.
inline std::vector<Layout> all_layouts(const DeviceMesh& mesh,
                                       const std::vector<Placement>& allowed) {
  std::vector<Placements> assignments{Placements{}};
  for (int i = 0; i < mesh.ndim(); ++i) {
    std::vector<Placements> longer;
    for (const Placements& start : assignments) {
      for (const Placement placement : allowed) {
        if (mesh.size(i) == 1 && !placement.is_replicate()) continue;
        longer.push_back(start);
        longer.back().push_back(placement);
      }
    }
    assignments = std::move(longer);
  }
  std::set<Layout> found;
  for (const Placements& placements : assignments) {
    // Every order of every dim's cuts: all vectors of places, the valid kept.
    const auto n = static_cast<std::int64_t>(placements.size());
    std::int64_t orders = 1;
    for (std::int64_t i = 0; i < n; ++i) orders *= n;
    for (std::int64_t code = 0; code < orders; ++code) {
      ShardOrder order;
      for (std::int64_t i = 0, rest = code; i < n; ++i, rest /= n) {
        order.push_back(static_cast<std::int8_t>(rest % n));
      }
      bool unused = false;
      for (std::size_t i = 0; i < placements.size(); ++i) {
        unused = unused || (!placements[i].is_shard() && order[i] != 0);
      }
      if (unused) continue;
      const auto layout = Layout::create(placements, order);
      if (layout) found.insert(*layout);
    }
  }
  return {found.begin(), found.end()};
}

class ReferenceSearch {
 public:
  // `written` are all ways to write the layouts; those in canonical form are
  // the layouts themselves. A move starts from a canonical form and may lead
  // to any form of a layout.
  ReferenceSearch(const DeviceMesh& mesh, const Topology& topology,
                  const TensorMeta& meta, const std::vector<Layout>& written,
                  std::int64_t bucket_bytes = 0)
      : mesh_(mesh),
        topology_(topology),
        meta_(meta),
        places_(topology, mesh),
        bucket_bytes_(bucket_bytes) {
    std::map<Layout, std::size_t> number;
    for (const Layout& layout : written) {
      if (canonical(layout, mesh, meta.shape()) != layout) continue;
      number.emplace(layout, layouts_.size());
      layouts_.push_back(layout);
    }
    const std::size_t n = layouts_.size();
    costs_.assign(n * n, kNoPath);
    for (std::size_t a = 0; a < n; ++a) {
      for (const Layout& form : written) {
        const auto b = number.find(canonical(form, mesh, meta.shape()));
        if (b == number.end()) continue;
        std::int64_t& cost = costs_[a * n + b->second];
        cost = std::min(cost, one_move(layouts_[a], form));
      }
      costs_[a * n + a] = 0;
    }
    for (std::size_t via = 0; via < n; ++via) {
      for (std::size_t a = 0; a < n; ++a) {
        const std::int64_t first = costs_[a * n + via];
        if (first == kNoPath) continue;
        for (std::size_t b = 0; b < n; ++b) {
          costs_[a * n + b] =
              std::min(costs_[a * n + b], first + costs_[via * n + b]);
        }
      }
    }
  }

  const std::vector<Layout>& layouts() const { return layouts_; }
  std::int64_t cost(std::size_t from, std::size_t to) const {
    return costs_[from * layouts_.size() + to];
  }

  // The cheapest single collective, over any set of mesh dims.
  std::int64_t one_move(const Layout& from, const Layout& to) const {
    std::int64_t least = kNoPath;
    for (std::uint32_t group = 1; group < 1U << mesh_.ndim(); ++group) {
      // The cost of a collective does not depend on the encoding of its target.
      if (legal(from, to, group)) {
        least = std::min(
            least, price(from, canonical(to, mesh_, meta_.shape()), group));
      }
    }
    return least;
  }

 private:
  enum class Kind { kReplicated, kShard, kPartial, kMixed };

  Kind kind(const Layout& layout, std::uint32_t group) const {
    std::set<Kind> kinds;
    for (int i = 0; i < mesh_.ndim(); ++i) {
      if ((group >> i & 1U) == 0) continue;
      kinds.insert(layout[i].is_replicate() ? Kind::kReplicated
                   : layout[i].is_shard()   ? Kind::kShard
                                            : Kind::kPartial);
    }
    return kinds.size() == 1 ? *kinds.begin() : Kind::kMixed;
  }

  static bool linear(Placement partial) {
    return partial.reduce_op() == ReduceOp::kSum ||
           partial.reduce_op() == ReduceOp::kAvg;
  }

  bool legal(const Layout& from, const Layout& to, std::uint32_t group) const {
    for (int i = 0; i < mesh_.ndim(); ++i) {
      const bool inside = (group >> i & 1U) != 0;
      if (inside && mesh_.size(i) == 1) return false;
      if (!inside && from[i] != to[i]) return false;
    }
    const Kind before = kind(from, group);
    const Kind after = kind(to, group);
    if (before == Kind::kMixed || after == Kind::kMixed) return false;
    if (before == Kind::kReplicated && after == Kind::kReplicated) return false;
    if (before == Kind::kShard && after == Kind::kPartial) return false;
    if (before == Kind::kPartial && after == Kind::kPartial) {
      for (int i = 0; i < mesh_.ndim(); ++i) {
        if ((group >> i & 1U) == 0) continue;
        const bool scaled = from[i] != to[i] && linear(from[i]) &&
                            linear(to[i]) &&
                            from[i].reduce_dtype() == to[i].reduce_dtype();
        if (!scaled) return false;
      }
    }
    for (int d = 0; d < meta_.rank(); ++d) {
      const DimIndices a = from.cuts(d);
      const DimIndices b = to.cuts(d);
      const auto stays = [&](const DimIndices& cuts) {
        std::size_t count = 0;
        while (count < cuts.size() && (group >> cuts[count] & 1U) == 0) ++count;
        for (std::size_t k = count; k < cuts.size(); ++k) {
          if ((group >> cuts[k] & 1U) == 0) return std::size_t{99};
        }
        return count;
      };
      const std::size_t kept = stays(a);
      if (kept == 99 || kept != stays(b)) return false;
      for (std::size_t k = 0; k < kept; ++k) {
        if (a[k] != b[k]) return false;
      }
      // A set that could be smaller.
      if (kept < a.size() && kept < b.size() && a[kept] == b[kept] &&
          from[a[kept]] == to[b[kept]]) {
        return false;
      }
    }
    return true;
  }

  static std::int64_t product(const Dims& sizes) {
    std::int64_t all = 1;
    for (const std::int64_t size : sizes) all *= size;
    return all;
  }

  bool even(const Layout& layout) const {
    return !layout.has_strided() && is_even(layout, mesh_, meta_.shape());
  }

  // Returns whether the shards of the group are adjacent in the full tensor.
  bool contiguous(const Layout& cut, const Layout& whole,
                  std::uint32_t group) const {
    if (!even(cut)) return false;
    std::set<int> dims;
    for (int i = 0; i < mesh_.ndim(); ++i) {
      if ((group >> i & 1U) != 0) dims.insert(cut[i].dim());
    }
    if (dims.size() != 1) return false;
    const Dims local = max_local_shape(whole, mesh_, meta_.shape());
    for (int d = 0; d < *dims.begin(); ++d) {
      if (local[static_cast<std::size_t>(d)] > 1) return false;
    }
    return true;
  }

  std::int64_t timed(CollectiveKind what, const GroupPlace& place,
                     std::int64_t bytes) const {
    if (bytes == 0) return 0;
    const std::int64_t alone =
        collective_nanoseconds(topology_, what, place, bytes);
    const bool shares = what == CollectiveKind::kAllGather ||
                        what == CollectiveKind::kReduceScatter ||
                        what == CollectiveKind::kAllReduce;
    if (!shares || bytes >= bucket_bytes_) return alone;
    const auto bucket = static_cast<double>(
        collective_nanoseconds(topology_, what, place, bucket_bytes_));
    return std::min(alone, static_cast<std::int64_t>(std::ceil(
                               static_cast<double>(bytes) /
                               static_cast<double>(bucket_bytes_) * bucket)));
  }

  std::int64_t price(const Layout& from, const Layout& to,
                     std::uint32_t group) const {
    const Kind before = kind(from, group);
    const Kind after = kind(to, group);
    if (before == Kind::kReplicated ||
        (before == Kind::kPartial && after == Kind::kPartial)) {
      return 0;
    }
    const GroupPlace place = places_.of_mask(group);
    const Dims in = max_local_shape(from, mesh_, meta_.shape());
    const Dims out = max_local_shape(to, mesh_, meta_.shape());
    const std::int64_t item = item_size(meta_.dtype());
    const std::int64_t in_bytes = product(in) * item;
    const std::int64_t out_bytes = product(out) * item;
    if (before == Kind::kShard && after == Kind::kReplicated) {
      return timed(CollectiveKind::kAllGather, place, place.ranks * in_bytes) +
             (contiguous(from, to, group)
                  ? 0
                  : memory_pass_nanoseconds(topology_, out_bytes));
    }
    if (before == Kind::kPartial) return reduction(from, to, group);
    bool disjoint = true;
    bool same_cuts = true;
    for (int d = 0; d < meta_.rank(); ++d) {
      std::vector<std::int64_t> left;
      std::vector<std::int64_t> made;
      for (const std::int32_t i : from.cuts(d)) {
        if ((group >> i & 1U) != 0) left.push_back(mesh_.size(i));
        same_cuts = same_cuts &&
                    ((group >> i & 1U) == 0 || from[i].split_factor() == 1);
      }
      for (const std::int32_t i : to.cuts(d)) {
        if ((group >> i & 1U) != 0) made.push_back(mesh_.size(i));
        same_cuts =
            same_cuts && ((group >> i & 1U) == 0 || to[i].split_factor() == 1);
      }
      disjoint = disjoint && (left.empty() || made.empty());
      if (even(from) && even(to)) {
        std::int64_t a = 1;
        std::int64_t b = 1;
        for (const std::int64_t size : left) a *= size;
        for (const std::int64_t size : made) b *= size;
        same_cuts = same_cuts && a == b;
      } else {
        same_cuts = same_cuts && left == made;
      }
    }
    if (same_cuts) return timed(CollectiveKind::kPermute, place, in_bytes);
    // Out of the outermost dim, or into it, takes one pass; else both ends do.
    const auto outermost = [&](const Layout& layout) {
      for (int i = 0; i < mesh_.ndim(); ++i) {
        if ((group >> i & 1U) != 0 &&
            (layout[i].dim() != 0 || layout[i].split_factor() > 1)) {
          return false;
        }
      }
      return true;
    };
    std::int64_t pass = memory_pass_nanoseconds(topology_, in_bytes);
    if (!outermost(from) && !outermost(to)) {
      pass += memory_pass_nanoseconds(topology_, out_bytes);
    }
    if (disjoint) {
      std::int64_t piece = item;
      for (std::size_t d = 0; d < in.size(); ++d) {
        piece *= std::min(in[d], out[d]);
      }
      return timed(CollectiveKind::kAllToAll, place, place.ranks * piece) +
             pass;
    }
    const std::int64_t most = std::max(in_bytes, out_bytes);
    return timed(CollectiveKind::kAllToAll, place,
                 (most * place.ranks + place.ranks - 2) / (place.ranks - 1)) +
           pass;
  }

  std::int64_t reduction(const Layout& from, const Layout& to,
                         std::uint32_t group) const {
    const GroupPlace place = places_.of_mask(group);
    Placement term;
    for (int i = 0; i < mesh_.ndim(); ++i) {
      if ((group >> i & 1U) == 0) continue;
      if (!term.is_partial() || from[i].reduce_op() == ReduceOp::kSum) {
        term = from[i];
      }
    }
    const DType dtype = term.reduce_dtype().value_or(meta_.dtype());
    const std::int64_t item = item_size(dtype);
    const bool native =
        reduces_natively(topology_.engine, term.reduce_op(), dtype);
    const std::int64_t in =
        product(max_local_shape(from, mesh_, meta_.shape()));
    const std::int64_t out = product(max_local_shape(to, mesh_, meta_.shape()));
    if (kind(to, group) == Kind::kShard) {
      const std::int64_t all = place.ranks * out * item;
      if (!native) {
        return timed(CollectiveKind::kAllToAll, place, all) +
               2 * memory_pass_nanoseconds(topology_, all);
      }
      return timed(CollectiveKind::kReduceScatter, place, all) +
             (dtype == meta_.dtype() && contiguous(to, from, group)
                  ? 0
                  : memory_pass_nanoseconds(topology_,
                                            in * item_size(meta_.dtype())));
    }
    const std::int64_t all =
        place.ranks * ((in + place.ranks - 1) / place.ranks) * item;
    if (!native) {
      return timed(CollectiveKind::kAllToAll, place, all) +
             memory_pass_nanoseconds(topology_, all) +
             timed(CollectiveKind::kAllGather, place, all);
    }
    return timed(CollectiveKind::kAllReduce, place, all);
  }

  DeviceMesh mesh_;
  Topology topology_;
  TensorMeta meta_;
  MeshPlaces places_;
  std::int64_t bucket_bytes_;
  std::vector<Layout> layouts_;
  std::vector<std::int64_t> costs_;
};

}  // namespace shardprop::testing
