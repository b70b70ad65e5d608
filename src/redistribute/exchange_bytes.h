// Computes sizes of uneven shards by visiting every rank.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>

namespace shardprop::redistribute {

// Both functions are exact on meshes of up to kCountedRanks ranks. On larger
// meshes, they assume a shard with the largest size in every dim. No rank
// exceeds this bound.
inline constexpr std::int64_t kCountedRanks = 4096;

// Returns the elements of the largest shard. Without strided shards, the rank
// at the origin holds it; with strided shards, any rank may.
std::int64_t largest_shard(const Layout& layout, const DeviceMesh& mesh,
                           const TensorMeta& meta);

// Returns the most bytes that a rank sends in an exchange of shards: the
// elements that it held and does not keep.
std::int64_t exchanged_bytes(const Layout& src, const Layout& dst,
                             const DeviceMesh& mesh, const TensorMeta& meta);

}  // namespace shardprop::redistribute
