#include "io/emit/group_cuts.h"

#include "base/index.h"
#include "io/emit/regions.h"

#include <algorithm>
#include <utility>

namespace shardprop::emit {
namespace {

// Returns the mesh dims of the group that shard a tensor dim, in the order in
// which they shard it.
std::vector<std::int32_t> cutting(const Layout& layout,
                                  const DimIndices& mesh_dims, int dim) {
  std::vector<std::int32_t> out;
  for (const std::int32_t m : layout.cuts(dim)) {
    const bool ours =
        std::find(mesh_dims.begin(), mesh_dims.end(), m) != mesh_dims.end();
    if (ours) out.push_back(m);
  }
  return out;
}

std::int64_t ranks_along(const DeviceMesh& mesh,
                         const std::vector<std::int32_t>& mesh_dims) {
  std::int64_t all = 1;
  for (const std::int32_t m : mesh_dims) all *= mesh.size(m);
  return all;
}

// Returns `at` with the index-th coordinate along these mesh dims. The last
// mesh dim varies fastest.
Coordinate along(Coordinate at, const DeviceMesh& mesh,
                 const std::vector<std::int32_t>& mesh_dims,
                 std::int64_t index) {
  for (std::size_t k = mesh_dims.size(); k-- > 0;) {
    const std::int64_t ranks = mesh.size(mesh_dims[k]);
    at[static_cast<std::size_t>(mesh_dims[k])] = index % ranks;
    index /= ranks;
  }
  return at;
}

GroupCuts::Dim dim_cuts(const Layout& cut, const Layout& uncut,
                        const DimIndices& mesh_dims, const DeviceMesh& mesh,
                        int d, std::int64_t whole, const Coordinate& at) {
  GroupCuts::Dim dim;
  const Intervals held = local_intervals(uncut, mesh, d, whole, at);
  const std::vector<std::int32_t> cuts = cutting(cut, mesh_dims, d);
  for (const std::int32_t m : cuts) {
    const auto* place = std::find(mesh_dims.begin(), mesh_dims.end(), m);
    dim.axes.push_back(static_cast<std::size_t>(place - mesh_dims.begin()));
  }
  const std::int64_t ranks = ranks_along(mesh, cuts);
  for (std::int64_t r = 0; r < ranks; ++r) {
    const Coordinate there = along(at, mesh, cuts, r);
    const Intervals part =
        common(held, local_intervals(cut, mesh, d, whole, there));
    dim.parts.push_back(places(held, part));
    dim.chunk = std::max(dim.chunk, size_of(part));
    if (there == at) dim.own = size_of(part);
  }
  dim.size = size_of(held);
  return dim;
}

}  // namespace

std::vector<Interval> GroupCuts::Dim::parted() const {
  std::vector<Interval> out;
  std::int64_t padding = size;
  for (const Intervals& part : parts) {
    out.insert(out.end(), part.begin(), part.end());
    const std::int64_t missing = chunk - size_of(part);
    if (missing > 0) out.push_back({padding, padding + missing});
    padding += missing;
  }
  return out;
}

std::vector<Interval> GroupCuts::Dim::joined() const {
  // Each entry has the offset of a run in the full dim and its interval among
  // the padded parts.
  std::vector<std::pair<std::int64_t, Interval>> found;
  std::int64_t begin = 0;
  for (const Intervals& part : parts) {
    std::int64_t next = begin;
    for (const Interval& run : part) {
      found.push_back({run.begin, {next, next + run.size()}});
      next += run.size();
    }
    begin += chunk;
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Interval> out;
  out.reserve(found.size());
  for (const auto& [place, run] : found) out.push_back(run);
  return out;
}

std::int64_t GroupCuts::group_size() const {
  std::int64_t all = 1;
  for (const std::int64_t n : ranks) all *= n;
  return all;
}

bool GroupCuts::is_rows() const {
  if (dims.empty()) return false;
  return std::all_of(dims.begin() + 1, dims.end(),
                     [](const Dim& dim) { return dim.axes.empty(); }) &&
         std::is_sorted(dims[0].axes.begin(), dims[0].axes.end());
}

std::optional<GroupCuts> group_cuts(const Layout& cut, const Layout& uncut,
                                    const DimIndices& mesh_dims,
                                    const DeviceMesh& mesh,
                                    const TensorMeta& whole,
                                    const Coordinate& at) {
  GroupCuts out;
  for (const std::int32_t m : mesh_dims) out.ranks.push_back(mesh.size(m));
  std::size_t axes = 0;
  for (int d = 0; d < whole.rank(); ++d) {
    out.dims.push_back(
        dim_cuts(cut, uncut, mesh_dims, mesh, d, whole.size(d), at));
    const GroupCuts::Dim& dim = out.dims.back();
    axes += dim.axes.size();
    std::int64_t shared = -dim.size;
    for (const Intervals& part : dim.parts) shared += size_of(part);
    if (shared != 0) return std::nullopt;
  }
  if (axes != mesh_dims.size()) return std::nullopt;
  return out;
}

std::optional<GroupExchange> group_exchange(
    const Layout& src, const Layout& dst, const DimIndices& mesh_dims,
    const DeviceMesh& mesh, const TensorMeta& whole, const Coordinate& at) {
  // If both sides shard one dim, few parts have the same size.
  for (int d = 0; d < whole.rank(); ++d) {
    if (!cutting(src, mesh_dims, d).empty() &&
        !cutting(dst, mesh_dims, d).empty()) {
      return std::nullopt;
    }
  }
  auto sent = group_cuts(dst, src, mesh_dims, mesh, whole, at);
  auto received = group_cuts(src, dst, mesh_dims, mesh, whole, at);
  if (!sent || !received) return std::nullopt;
  std::int64_t message = 1;
  for (std::size_t d = 0; d < sent->dims.size(); ++d) {
    // One side shards the dim, equally on all ranks; the other side holds a
    // part.
    const bool cut_there = !sent->dims[d].axes.empty();
    const std::int64_t chunk =
        cut_there ? sent->dims[d].chunk : received->dims[d].chunk;
    sent->dims[d].chunk = received->dims[d].chunk = chunk;
    message *= chunk;
  }
  const std::int64_t most =
      std::max(max_local_elements(src, mesh, whole.shape()),
               max_local_elements(dst, mesh, whole.shape()));
  if (message * sent->group_size() > 2 * most) return std::nullopt;
  return GroupExchange{*std::move(sent), *std::move(received)};
}

}  // namespace shardprop::emit
