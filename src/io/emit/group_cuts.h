// `GroupCuts` splits a tensor that every rank of a group holds into one part
// per rank. Messages have one size: each dim is padded to its largest part.
//
//   f32[8,5], S(1) cuts R, over tp=2: dim 1 of 5 into [0,3) [3,5), padded to 3
//   f32[7], S(0),S(0) cuts R, over dp=2,tp=2: [0,2) [2,4) [4,6) [6,7), to 2
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::emit {

struct GroupCuts {
  std::vector<std::int64_t> ranks;  // of each mesh dim of the group, ascending
  struct Dim {
    std::vector<std::size_t>
        axes;                      // the mesh dims that cut it, first cut first
    std::vector<Intervals> parts;  // by rank along the axes: their places
    std::int64_t size = 0;         // of what is cut
    std::int64_t chunk = 0;        // of a part, with padding
    std::int64_t own = 0;          // of this rank's part

    // All parts, padded.
    std::int64_t padded() const {
      return chunk * static_cast<std::int64_t>(parts.size());
    }
    // Returns the padded parts, concatenated, as runs of the dim with its
    // padding appended.
    std::vector<Interval> parted() const;
    // Returns the dim as runs of the concatenated padded parts.
    std::vector<Interval> joined() const;
  };
  std::vector<Dim> dims;  // by tensor dim

  std::int64_t group_size() const;
  // True if the parts, in the order of the group, are consecutive in dim 0
  // already.
  bool is_rows() const;
};

// Returns the parts into which `cut` shards the region that rank `at` holds
// under `uncut`, one part per rank of the group. Returns nullopt if some mesh
// dim of the group shards no tensor dim, or if ranks share elements.
std::optional<GroupCuts> group_cuts(const Layout& cut, const Layout& uncut,
                                    const DimIndices& mesh_dims,
                                    const DeviceMesh& mesh,
                                    const TensorMeta& whole,
                                    const Coordinate& at);

// The exchange of a step such as S(i) -> S(j): each rank sends a part of its
// region to each rank.
struct GroupExchange {
  GroupCuts sent;
  GroupCuts received;  // with the same chunks
};
// Returns nullopt in the cases of `group_cuts`, and if the layouts shard a
// common tensor dim. Also returns nullopt if messages of equal size carry more
// than twice the largest local tensor.
std::optional<GroupExchange> group_exchange(
    const Layout& src, const Layout& dst, const DimIndices& mesh_dims,
    const DeviceMesh& mesh, const TensorMeta& whole, const Coordinate& at);

}  // namespace shardprop::emit
