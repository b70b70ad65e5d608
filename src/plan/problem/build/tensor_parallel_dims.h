// tensor_parallel_dims() tells which mesh dims shard fused projections by heads.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/recipe.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

// Returns groups of mesh dims; bit m of a group is mesh dim m. The first group is
// the last mesh dim larger than 1, whose links are the fastest. The second one has
// the dims that the recipe gives to tensor parallelism. It is left out if there is
// none, and if the mesh lacks a dim of the recipe.
std::vector<std::uint32_t> tensor_parallel_dims(
    const DeviceMesh& mesh, const std::optional<Recipe>& asked);

}  // namespace shardprop
