// What only a look at every rank tells, where shards are uneven.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>

namespace shardprop::redistribute {

// Both are exact on meshes of up to kCountedRanks ranks; beyond, they are what
// a shard as large as the largest in every dim would take, which no rank
// exceeds.
inline constexpr std::int64_t kCountedRanks = 4096;

// Elements of the largest shard. Without strided shards the rank at the origin
// holds it; with them it may be any.
std::int64_t largest_shard(const Layout& layout, const DeviceMesh& mesh,
                           const TensorMeta& meta);

// The most bytes any rank sends when shards are dealt anew: what it held and
// does not keep.
std::int64_t exchanged_bytes(const Layout& src, const Layout& dst,
                             const DeviceMesh& mesh, const TensorMeta& meta);

}  // namespace shardprop::redistribute
