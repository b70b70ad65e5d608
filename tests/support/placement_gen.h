// Generates random meshes, layouts and tensors for properties
// (support/property.h), and defines a local region in the plainest way.
#pragma once

#include "support/printing.h"

#include <rapidcheck.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::testing {

struct LayoutChoice {
  bool strided = true;
  bool partial = true;
  bool any_order = true;
};

// 1 to `most_dims` dims of 1 to `most_size` ranks each, from rank 0.
inline DeviceMesh some_mesh(int most_dims = 4, std::int64_t most_size = 4) {
  std::vector<MeshDim> dims;
  const int ndim = *rc::gen::inRange(1, most_dims + 1);
  for (int i = 0; i < ndim; ++i) {
    const auto size = *rc::gen::inRange<std::int64_t>(1, most_size + 1);
    dims.push_back({"d" + std::to_string(i), size});
  }
  return DeviceMesh::create(dims).value();
}

// Returns a layout for a mesh of `mesh_ndim` dims and a tensor of `tensor_rank`
// dims.
inline Layout some_layout(int mesh_ndim, int tensor_rank,
                          LayoutChoice choice = {}) {
  const ReduceOp op = *rc::gen::elementOf(std::vector<ReduceOp>(
      std::begin(kAllReduceOps), std::end(kAllReduceOps)));
  Placements placements;
  for (int i = 0; i < mesh_ndim; ++i) {
    const int kind = *rc::gen::inRange(0, 8);
    Placement placement;
    if (kind < 6 && tensor_rank > 0) {
      const int dim = *rc::gen::inRange(0, tensor_rank);
      const int factor =
          choice.strided && kind < 3 ? *rc::gen::inRange(1, 7) : 1;
      placement = Placement::strided_shard(dim, factor);
    } else if (kind == 6 && choice.partial) {
      placement = Placement::partial(op);
    }
    placements.push_back(placement);
  }
  ShardOrder order(placements.size());
  for (int dim = 0; dim < tensor_rank; ++dim) {
    std::vector<std::size_t> cuts;
    for (std::size_t i = 0; i < placements.size(); ++i) {
      if (placements[i].shards(dim)) cuts.push_back(i);
    }
    for (std::size_t i = cuts.size(); choice.any_order && i > 1; --i) {
      std::swap(cuts[i - 1], cuts[*rc::gen::inRange<std::size_t>(0, i)]);
    }
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      order[cuts[i]] = static_cast<std::int8_t>(i);
    }
  }
  return Layout::create(std::move(placements), std::move(order)).value();
}

inline Dims some_shape(int rank, std::int64_t most_size = 20) {
  Dims shape;
  for (int i = 0; i < rank; ++i) {
    shape.push_back(*rc::gen::inRange<std::int64_t>(0, most_size + 1));
  }
  return shape;
}

inline Coordinate some_place(const DeviceMesh& mesh) {
  return mesh.coordinate_at_index(
      *rc::gen::inRange<std::int64_t>(0, mesh.size()));
}

using Indices = std::vector<std::int64_t>;

// torch.chunk: at most n pieces of ceil(size / n), filled up with empty ones.
inline std::vector<Indices> naive_chunk(const Indices& whole, std::int64_t n) {
  const auto size = static_cast<std::int64_t>(whole.size());
  const std::int64_t each = std::max<std::int64_t>(1, (size + n - 1) / n);
  std::vector<Indices> chunks(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < size; ++i) {
    chunks[static_cast<std::size_t>(i / each)].push_back(
        whole[static_cast<std::size_t>(i)]);
  }
  return chunks;
}

// The indices of `tensor_dim` that the rank at `at` holds, in local order: cut
// after cut, chunk into pieces, chunk every piece over the mesh dim.
inline Indices naive_held(const Layout& layout, const DeviceMesh& mesh,
                          int tensor_dim, std::int64_t size,
                          const Coordinate& at) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 0; i < layout.placements().size(); ++i) {
    if (layout.placements()[i].shards(tensor_dim)) cuts.push_back(i);
  }
  std::sort(cuts.begin(), cuts.end(), [&](std::size_t a, std::size_t b) {
    return layout.shard_order()[a] < layout.shard_order()[b];
  });
  Indices held(static_cast<std::size_t>(size));
  std::iota(held.begin(), held.end(), 0);
  for (const std::size_t cut : cuts) {
    Indices mine;
    const std::int64_t parts = mesh.size(static_cast<int>(cut));
    for (const Indices& piece :
         naive_chunk(held, layout.placements()[cut].split_factor())) {
      const Indices part =
          naive_chunk(piece, parts)[static_cast<std::size_t>(at[cut])];
      mine.insert(mine.end(), part.begin(), part.end());
    }
    held = std::move(mine);
  }
  return held;
}

}  // namespace shardprop::testing
