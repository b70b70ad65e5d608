#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <utility>

#include "base/index.h"

namespace shardprop {
namespace {

void append(Intervals& out, Interval piece) {
  if (piece.size() <= 0) return;
  if (!out.empty() && out.back().end == piece.begin) {
    out.back().end = piece.end;
  } else {
    out.push_back(piece);
  }
}

std::int64_t total(const Intervals& held) {
  std::int64_t size = 0;
  for (const Interval& piece : held) size += piece.size();
  return size;
}

// Adds the elements at the local positions `wanted` of `held` to `out`.
void take(const Intervals& held, Interval wanted, Intervals& out) {
  std::int64_t before = 0;
  for (const Interval& piece : held) {
    const std::int64_t begin = std::max(wanted.begin - before, std::int64_t{0});
    const std::int64_t end = std::min(wanted.end - before, piece.size());
    append(out, {piece.begin + begin, piece.begin + end});
    before += piece.size();
  }
}

// cut() returns part `index` of `parts` of each of the `pieces` pieces of
// `held`.
Intervals cut(const Intervals& held, std::int64_t pieces, std::int64_t parts,
              std::int64_t index) {
  const std::int64_t size = total(held);
  Intervals out;
  for (std::int64_t p = 0; p < pieces; ++p) {
    const Interval piece = chunk(size, pieces, p);
    if (piece.size() == 0) break;
    const Interval part = chunk(piece.size(), parts, index);
    take(held, {piece.begin + part.begin, piece.begin + part.end}, out);
  }
  return out;
}

// cut_size() returns the number of elements that cut() leaves. It needs no
// intervals, because all pieces but the last ones are full.
std::int64_t cut_size(std::int64_t size, std::int64_t pieces,
                      std::int64_t parts, std::int64_t index) {
  if (pieces == 1) return chunk(size, parts, index).size();
  const std::int64_t full = (size + pieces - 1) / pieces;
  if (full == 0) return 0;
  const std::int64_t whole = size / full;
  return whole * chunk(full, parts, index).size() +
         chunk(size - whole * full, parts, index).size();
}

// local_sizes() returns every size that a rank may hold of `tensor_dim`, in
// ascending order.
std::vector<std::int64_t> local_sizes(const Layout& layout,
                                      const DeviceMesh& mesh, int tensor_dim,
                                      std::int64_t size) {
  std::vector<std::int64_t> sizes{size};
  for (const std::int32_t mesh_dim : layout.cuts(tensor_dim)) {
    const std::int64_t pieces = layout[mesh_dim].split_factor();
    const std::int64_t parts = mesh.size(mesh_dim);
    std::vector<std::int64_t> left;
    for (const std::int64_t whole : sizes) {
      // Over the ranks, the chunks of a piece are full, then one is shorter,
      // then all are empty. Only the ranks at these steps need a check. The
      // last piece is shorter than the others and has steps of its own.
      const std::int64_t full = (whole + pieces - 1) / pieces;
      const std::int64_t rest = full == 0 ? 0 : whole % full;
      for (const std::int64_t piece : {full, rest}) {
        const std::int64_t each = (piece + parts - 1) / parts;
        const std::int64_t step = each == 0 ? 0 : piece / each;
        for (const std::int64_t index : {std::int64_t{0}, step, step + 1}) {
          if (index < parts) {
            left.push_back(cut_size(whole, pieces, parts, index));
          }
        }
      }
    }
    std::sort(left.begin(), left.end());
    left.erase(std::unique(left.begin(), left.end()), left.end());
    sizes = std::move(left);
  }
  return sizes;
}

}  // namespace

Interval chunk(std::int64_t size, std::int64_t parts, std::int64_t index) {
  const std::int64_t each = (size + parts - 1) / parts;
  const std::int64_t begin = std::min(size, each * index);
  return {begin, std::min(size, begin + each)};
}

Dims LocalRegion::shape() const {
  Dims shape;
  for (const Intervals& held : dims_) shape.push_back(total(held));
  return shape;
}

std::int64_t LocalRegion::numel() const {
  std::int64_t count = 1;
  for (const Intervals& held : dims_) count *= total(held);
  return count;
}

std::optional<Dims> LocalRegion::offset() const {
  Dims offset;
  for (const Intervals& held : dims_) {
    if (held.size() > 1) return std::nullopt;
    offset.push_back(held.empty() ? 0 : held[0].begin);
  }
  return offset;
}

Intervals local_intervals(const Layout& layout, const DeviceMesh& mesh,
                          int tensor_dim, std::int64_t size,
                          const Coordinate& at) {
  Intervals held;
  append(held, {0, size});
  for (const std::int32_t mesh_dim : layout.cuts(tensor_dim)) {
    held = cut(held, layout[mesh_dim].split_factor(), mesh.size(mesh_dim),
               at[index(mesh_dim)]);
  }
  return held;
}

LocalRegion local_region(const Layout& layout, const DeviceMesh& mesh,
                         std::span<const std::int64_t> shape,
                         const Coordinate& at) {
  std::vector<Intervals> dims;
  dims.reserve(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    dims.push_back(
        local_intervals(layout, mesh, static_cast<int>(d), shape[d], at));
  }
  return LocalRegion(std::move(dims));
}

LocalRegion local_region(const TensorSpec& spec, const Coordinate& at) {
  const Dims& shape = spec.meta().shape();
  return local_region(spec.layout(), spec.mesh(), shape, at);
}

Dims local_shape(const Layout& layout, const DeviceMesh& mesh,
                 std::span<const std::int64_t> shape, const Coordinate& at) {
  Dims out;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t size = shape[d];
    for (const std::int32_t mesh_dim : layout.cuts(static_cast<int>(d))) {
      size = cut_size(size, layout[mesh_dim].split_factor(),
                      mesh.size(mesh_dim), at[index(mesh_dim)]);
    }
    out.push_back(size);
  }
  return out;
}

Dims max_local_shape(const Layout& layout, const DeviceMesh& mesh,
                     std::span<const std::int64_t> shape) {
  if (!layout.has_strided()) {
    return local_shape(layout, mesh, shape,
                       Coordinate(static_cast<std::size_t>(mesh.ndim())));
  }
  // The origin holds the largest part of each piece, but a smaller local size
  // may be cut into more pieces.
  Dims out;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    out.push_back(
        local_sizes(layout, mesh, static_cast<int>(d), shape[d]).back());
  }
  return out;
}

Dims max_local_shape(const TensorSpec& spec) {
  const Dims& shape = spec.meta().shape();
  return max_local_shape(spec.layout(), spec.mesh(), shape);
}

std::int64_t max_local_elements(const Layout& layout, const DeviceMesh& mesh,
                                std::span<const std::int64_t> shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : max_local_shape(layout, mesh, shape)) {
    elements *= size;
  }
  return elements;
}

std::int64_t max_local_bytes(const Layout& layout, const DeviceMesh& mesh,
                             const TensorMeta& meta) {
  return item_size(meta.dtype()) *
         max_local_elements(layout, mesh, meta.shape());
}

std::int64_t max_local_bytes(const TensorSpec& spec) {
  return max_local_bytes(spec.layout(), spec.mesh(), spec.meta());
}

bool is_even(const Layout& layout, const DeviceMesh& mesh,
             std::span<const std::int64_t> shape) {
  const bool strided = layout.has_strided();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (strided) {
      if (local_sizes(layout, mesh, dim, shape[d]).size() > 1) return false;
      continue;
    }
    std::int64_t size = shape[d];
    for (const std::int32_t mesh_dim : layout.cuts(dim)) {
      if (size % mesh.size(mesh_dim) != 0) return false;
      size /= mesh.size(mesh_dim);
    }
  }
  return true;
}

}  // namespace shardprop
