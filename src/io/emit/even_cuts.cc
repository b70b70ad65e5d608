#include "io/emit/even_cuts.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>

namespace shardprop::emit {

std::int64_t EvenCuts::Dim::padded() const { return chunk * pieces; }

std::int64_t EvenCuts::group_size() const {
  std::int64_t all = 1;
  for (const std::int64_t n : ranks) all *= n;
  return all;
}

bool EvenCuts::is_rows() const {
  if (ranks.size() != 1 || dims.empty()) return false;
  return std::all_of(dims.begin() + 1, dims.end(),
                     [](const Dim& dim) { return dim.axes.empty(); });
}

namespace {

// What is held of one dim, if it is one run (or nothing).
std::optional<Interval> run_of(const Layout& layout, const DeviceMesh& mesh,
                               int dim, std::int64_t size,
                               const Coordinate& at) {
  const Intervals held = local_intervals(layout, mesh, dim, size, at);
  if (held.size() > 1) return std::nullopt;
  return held.empty() ? Interval{} : held[0];
}

// Whether rank i of the cuts of a dim holds the i-th chunk.
bool holds_chunks(const Layout& cut, const DeviceMesh& mesh,
                  const TensorMeta& whole, const Coordinate& at, int d,
                  const EvenCuts::Dim& dim,
                  const std::vector<std::int32_t>& mesh_dims,
                  std::int64_t begin) {
  for (std::int64_t i = 0; i < dim.pieces; ++i) {
    Coordinate there = at;
    std::int64_t rest = i;
    for (std::size_t k = mesh_dims.size(); k-- > 0;) {
      const std::int64_t ranks = mesh.size(mesh_dims[k]);
      there[static_cast<std::size_t>(mesh_dims[k])] = rest % ranks;
      rest /= ranks;
    }
    const auto held = run_of(cut, mesh, d, whole.size(d), there);
    const std::int64_t from = std::min(i * dim.chunk, dim.size);
    const std::int64_t to = std::min(from + dim.chunk, dim.size);
    if (!held || held->size() != to - from ||
        (held->size() > 0 && held->begin != begin + from)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<EvenCuts> even_cuts(const Layout& cut, const Layout& uncut,
                                  const DimIndices& mesh_dims,
                                  const DeviceMesh& mesh,
                                  const TensorMeta& whole,
                                  const Coordinate& at) {
  EvenCuts out;
  for (const std::int32_t m : mesh_dims) out.ranks.push_back(mesh.size(m));
  std::size_t cutting = 0;
  for (int d = 0; d < whole.rank(); ++d) {
    EvenCuts::Dim& dim = out.dims.emplace_back();
    const auto before = run_of(uncut, mesh, d, whole.size(d), at);
    const auto after = run_of(cut, mesh, d, whole.size(d), at);
    if (!before || !after) return std::nullopt;
    dim.size = dim.chunk = before->size();
    dim.own = after->size();
    std::vector<std::int32_t> cuts;
    for (const std::int32_t m : cut.cuts(d)) {
      const auto* place = std::find(mesh_dims.begin(), mesh_dims.end(), m);
      if (place == mesh_dims.end()) continue;
      cuts.push_back(m);
      dim.axes.push_back(static_cast<std::size_t>(place - mesh_dims.begin()));
      dim.pieces *= mesh.size(m);
      ++cutting;
    }
    dim.chunk = (dim.size + dim.pieces - 1) / dim.pieces;
    if (!cuts.empty() &&
        !holds_chunks(cut, mesh, whole, at, d, dim, cuts, before->begin)) {
      return std::nullopt;
    }
  }
  if (cutting != mesh_dims.size()) return std::nullopt;
  return out;
}

}  // namespace shardprop::emit
