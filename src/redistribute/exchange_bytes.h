// The most bytes any rank sends when shards are dealt anew: what it held and
// does not keep.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>

namespace shardprop::redistribute {

// Exact on meshes of up to kCountedRanks ranks; what the largest shard takes,
// which no rank exceeds, beyond.
inline constexpr std::int64_t kCountedRanks = 4096;
std::int64_t exchanged_bytes(const Layout& src, const Layout& dst,
                             const DeviceMesh& mesh, const TensorMeta& meta);

}  // namespace shardprop::redistribute
