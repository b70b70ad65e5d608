// DeviceMesh::Body stores the dims, ranks and hash of a DeviceMesh.
#pragma once

#include "mesh/rank_modes.h"

#include <shardprop/base/hash.h>
#include <shardprop/mesh/device_mesh.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

// Checks that names and sizes form a mesh. Errors: kMeshTooManyDims,
// kMeshDimName, kMeshSize.
Result<void> check_dims(std::span<const MeshDim> dims);

struct DeviceMesh::Body {
  std::vector<MeshDim> dims;
  std::int64_t size = 1;
  std::int64_t first = 0;        // position of the origin
  std::vector<RankModes> modes;  // per dim
  // Maps positions to ranks; null if positions are ranks.
  std::shared_ptr<const RankTable> table;
  std::size_t hash = 0;

  std::int64_t rank_of_position(std::int64_t position) const {
    return table ? table->rank(position) : position;
  }
  RankModes all_modes() const {
    RankModes all;
    for (const RankModes& of_dim : modes) {
      for (const RankMode& mode : of_dim) all.push_back(mode);
    }
    return all;
  }
  RankGroup ranks() const { return {first, all_modes(), table}; }

  void seal() {
    size = 1;
    for (const MeshDim& dim : dims) size *= dim.size;
    hash = 0;
    for (const MeshDim& dim : dims) {
      hash = hash_combine(hash, dim.name);
      hash = hash_combine(hash, dim.size);
    }
    // Equal meshes may have different encodings, so the hash uses the first and
    // the last rank only.
    const RankGroup all = ranks();
    hash = hash_combine(hash, all.rank(0));
    hash = hash_combine(hash, all.rank(size - 1));
  }
};

}  // namespace shardprop
