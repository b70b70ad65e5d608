#include "io/emit/regions.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shardprop::emit {
namespace {

Intervals common(const Intervals& a, const Intervals& b) {
  // In the order of `b`, which has the piece that is wanted.
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

// Where the elements of `part` stand among those of `held`; neighbours joined.
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

std::int64_t size_of(const Intervals& held) {
  std::int64_t size = 0;
  for (const Interval& run : held) size += run.size();
  return size;
}

// Puts pieces together dim by dim: what lies between two cuts of a dim is a
// slab, which has fewer pieces.
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
  // The runs of the dim within which every piece holds all or nothing, in the
  // order in which the result has them.
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

Argument ints(const Dims& dims) {
  return std::vector<std::int64_t>(dims.begin(), dims.end());
}

Argument integer(std::int64_t value) { return value; }

}  // namespace

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
    const auto dim = static_cast<int>(d);
    const Intervals at = places(held.dims()[d], part.dims()[d]);
    const std::int64_t all = size_of(held.dims()[d]);
    if (at.size() == 1 && at[0].begin == 0 && at[0].end == all) continue;
    if (at.empty()) {
      x = slice(graph, x, dim, 0, 0);
      continue;
    }
    std::vector<TorchId> parts;
    for (const Interval& run : at) {
      parts.push_back(slice(graph, x, dim, run.begin, run.end));
    }
    x = parts.size() == 1 ? parts[0] : cat(graph, std::move(parts), dim);
  }
  return x;
}

TorchId assemble(TorchGraph& graph, const std::vector<Piece>& pieces,
                 const LocalRegion& wanted) {
  return Assembly(graph, wanted).run(pieces, 0);
}

TorchId slice(TorchGraph& graph, TorchId x, int dim, std::int64_t start,
              std::int64_t end) {
  const TensorMeta& meta = graph.meta(x);
  Dims shape = meta.shape();
  if (start == 0 && end == shape[static_cast<std::size_t>(dim)]) return x;
  shape[static_cast<std::size_t>(dim)] = end - start;
  return graph.op(
      "aten.slice.Tensor",
      {{"self", x},
       {"dim", integer(dim)},
       {"start", integer(start)},
       {"end", integer(end)}},
      *TensorMeta::create(std::move(shape), meta.strides(), meta.dtype()));
}

TorchId cat(TorchGraph& graph, std::vector<TorchId> parts, int dim) {
  Dims shape = graph.shape(parts[0]);
  const DType dtype = graph.dtype(parts[0]);
  std::int64_t& size = shape[static_cast<std::size_t>(dim)];
  size = 0;
  for (const TorchId part : parts) {
    size += graph.shape(part)[static_cast<std::size_t>(dim)];
  }
  return graph.op("aten.cat.default",
                  {{"tensors", std::move(parts)}, {"dim", integer(dim)}},
                  dense(std::move(shape), dtype));
}

TorchId reshape(TorchGraph& graph, TorchId x, Dims shape) {
  if (graph.shape(x) == shape) return x;
  return graph.op("aten.reshape.default", {{"self", x}, {"shape", ints(shape)}},
                  dense(shape, graph.dtype(x)));
}

TorchId permute(TorchGraph& graph, TorchId x,
                const std::vector<std::int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  const TensorMeta& meta = graph.meta(x);
  Dims shape;
  Dims strides;
  for (const std::int64_t dim : order) {
    shape.push_back(meta.shape()[static_cast<std::size_t>(dim)]);
    strides.push_back(meta.strides()[static_cast<std::size_t>(dim)]);
  }
  return graph.op(
      "aten.permute.default", {{"self", x}, {"dims", Argument(order)}},
      *TensorMeta::create(std::move(shape), std::move(strides), meta.dtype()));
}

TorchId contiguous(TorchGraph& graph, TorchId x) {
  return graph.op("aten.contiguous.default", {{"self", x}},
                  dense(graph.shape(x), graph.dtype(x)));
}

TorchId cast(TorchGraph& graph, TorchId x, DType dtype) {
  if (graph.dtype(x) == dtype) return x;
  return graph.op("aten._to_copy.default",
                  {{"self", x}, {"dtype", Argument(dtype)}},
                  dense(graph.shape(x), dtype));
}

TorchId scaled(TorchGraph& graph, TorchId x, double factor) {
  if (factor == 1) return x;
  return graph.op("aten.mul.Scalar", {{"self", x}, {"other", Argument(factor)}},
                  dense(graph.shape(x), graph.dtype(x)));
}

TorchId padded(TorchGraph& graph, TorchId x, int dim, std::int64_t size) {
  Dims shape = graph.shape(x);
  const auto d = static_cast<std::size_t>(dim);
  const std::int64_t missing = size - shape[d];
  if (missing == 0) return x;
  // Pairs from the last dim on.
  std::vector<std::int64_t> pad(2 * (shape.size() - d), 0);
  pad.back() = missing;
  shape[d] = size;
  return graph.op("aten.constant_pad_nd.default",
                  {{"self", x}, {"pad", Argument(std::move(pad))}},
                  dense(std::move(shape), graph.dtype(x)));
}

TorchId filled(TorchGraph& graph, const Dims& shape, DType dtype,
               std::int64_t value, const Argument& device) {
  return graph.op("aten.full.default",
                  {{"size", ints(shape)},
                   {"fill_value", integer(value)},
                   {"dtype", Argument(dtype)},
                   {"device", device}},
                  dense(shape, dtype));
}

}  // namespace shardprop::emit
