// Cuts that equal messages can carry: each mesh dim of a step cuts one tensor
// dim into chunks of one size, the last ones padded.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::emit {

// How a group over `mesh_dims` cuts the tensor that `whole_at` leaves of a
// larger one.
struct EvenCuts {
  std::vector<std::int64_t> ranks;  // of each mesh dim, ascending
  // By tensor dim: which of them cut it, first cut first, and the chunk.
  struct Dim {
    std::vector<std::size_t> axes;
    std::int64_t size = 0;   // before the cuts
    std::int64_t chunk = 0;  // of a rank, with padding
    std::int64_t own = 0;    // of this rank
    std::int64_t padded() const;
    std::int64_t pieces = 1;
  };
  std::vector<Dim> dims;

  std::int64_t group_size() const;
  // The only tensor dim that is cut, by one mesh dim, if it is dim 0.
  bool is_rows() const;
};

// `cut` cuts finer than `uncut`, in `mesh_dims`; nothing where messages would
// differ in size or shards lie in pieces.
std::optional<EvenCuts> even_cuts(const Layout& cut, const Layout& uncut,
                                  const DimIndices& mesh_dims,
                                  const DeviceMesh& mesh,
                                  const TensorMeta& whole,
                                  const Coordinate& at);

}  // namespace shardprop::emit
