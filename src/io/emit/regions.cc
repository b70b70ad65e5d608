#include "io/emit/regions.h"

#include "io/emit/runs.h"
#include "io/emit/tensor_ops.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace shardprop::emit {
namespace {

// Assembles pieces dim by dim: between two boundaries of a dim is a slab, which
// has fewer pieces.
class Assembly {
 public:
  Assembly(TorchGraph& graph, const LocalRegion& wanted)
      : graph_(graph), wanted_(wanted) {}

  TorchId run(const std::vector<Piece>& pieces, std::size_t dim) {
    if (pieces.size() == 1) return pieces[0].value;
    const std::vector<Interval> slabs = cuts(pieces, dim);
    if (slabs.size() == 1) return run(pieces, dim + 1);
    std::vector<TorchId> parts;
    for (const Interval& slab : slabs) {
      parts.push_back(run(within(pieces, dim, slab), dim + 1));
    }
    return cat(graph_, std::move(parts), static_cast<int>(dim));
  }

 private:
  // Returns the maximal runs of the dim that each piece holds fully or not at
  // all, in the order of the result.
  std::vector<Interval> cuts(const std::vector<Piece>& pieces,
                             std::size_t dim) const {
    std::set<std::int64_t> ends;
    for (const Piece& piece : pieces) {
      for (const Interval& run : piece.region.dims()[dim]) {
        ends.insert(run.begin);
        ends.insert(run.end);
      }
    }
    std::vector<Interval> out;
    for (const Interval& run : wanted_.dims()[dim]) {
      std::int64_t begin = run.begin;
      for (auto it = ends.upper_bound(begin); begin < run.end; ++it) {
        const std::int64_t end =
            it == ends.end() ? run.end : std::min(*it, run.end);
        out.push_back({begin, end});
        begin = end;
      }
    }
    return out;
  }

  std::vector<Piece> within(const std::vector<Piece>& pieces, std::size_t dim,
                            const Interval& slab) {
    std::vector<Piece> out;
    for (const Piece& piece : pieces) {
      std::vector<Intervals> dims = piece.region.dims();
      const Intervals part = common(dims[dim], Intervals{slab});
      if (part.empty()) continue;
      if (part == dims[dim]) {
        out.push_back(piece);
        continue;
      }
      const Intervals at = places(dims[dim], part);
      dims[dim] = part;
      out.push_back({slice(graph_, piece.value, static_cast<int>(dim),
                           at[0].begin, at[0].end),
                     LocalRegion(std::move(dims))});
    }
    return out;
  }

  TorchGraph& graph_;
  const LocalRegion& wanted_;
};

}  // namespace

std::int64_t size_of(const Intervals& runs) {
  return std::accumulate(
      runs.begin(), runs.end(), std::int64_t{0},
      [](std::int64_t size, const Interval& run) { return size + run.size(); });
}

Intervals common(const Intervals& a, const Intervals& b) {
  Intervals out;
  for (const Interval& wanted : b) {
    for (const Interval& held : a) {
      const std::int64_t begin = std::max(held.begin, wanted.begin);
      const std::int64_t end = std::min(held.end, wanted.end);
      if (begin < end) out.push_back({begin, end});
    }
  }
  return out;
}

Intervals places(const Intervals& held, const Intervals& part) {
  Intervals out;
  for (const Interval& wanted : part) {
    std::int64_t before = 0;
    for (const Interval& run : held) {
      const std::int64_t begin = std::max(run.begin, wanted.begin);
      const std::int64_t end = std::min(run.end, wanted.end);
      if (begin < end) {
        const Interval at{before + begin - run.begin, before + end - run.begin};
        if (!out.empty() && out[out.size() - 1].end == at.begin) {
          out[out.size() - 1].end = at.end;
        } else {
          out.push_back(at);
        }
      }
      before += run.size();
    }
  }
  return out;
}

LocalRegion common_part(const LocalRegion& a, const LocalRegion& b) {
  std::vector<Intervals> dims;
  bool empty = false;
  for (std::size_t d = 0; d < a.dims().size(); ++d) {
    dims.push_back(common(a.dims()[d], b.dims()[d]));
    empty = empty || dims.back().empty();
  }
  return LocalRegion(std::move(dims));
}

TorchId select(TorchGraph& graph, TorchId x, const LocalRegion& held,
               const LocalRegion& part) {
  for (std::size_t d = 0; d < held.dims().size(); ++d) {
    const Intervals at = places(held.dims()[d], part.dims()[d]);
    x = rearranged(graph, x, static_cast<int>(d), {at.begin(), at.end()});
  }
  return x;
}

TorchId assemble(TorchGraph& graph, const std::vector<Piece>& pieces,
                 const LocalRegion& wanted) {
  return Assembly(graph, wanted).run(pieces, 0);
}

}  // namespace shardprop::emit
