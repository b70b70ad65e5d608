// The largest split factor of a strided shard: a rank's region is listed piece
// by piece, so that a factor of billions would be a list of billions. As many
// as a mesh has ranks at most.
#pragma once

#include <shardprop/mesh/device_mesh.h>

namespace shardprop {

inline constexpr std::int64_t kMostPieces = kMaxMeshRanks;

}  // namespace shardprop
