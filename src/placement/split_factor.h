// kMostPieces is the largest split factor of a strided shard, equal to the most
// ranks of a mesh. A rank's region is a list of pieces, so a factor of billions
// would be a list of billions.
#pragma once

#include <shardprop/mesh/device_mesh.h>

namespace shardprop {

inline constexpr std::int64_t kMostPieces = kMaxMeshRanks;

}  // namespace shardprop
