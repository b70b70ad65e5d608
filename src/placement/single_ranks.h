// Mesh dims of one rank: any placement there is equivalent.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>

namespace shardprop {

// Replaces the placements on mesh dims of one rank by R.
//
//   S(0),S(1) on mesh 1,4: R,S(1)
Layout without_single_ranks(const Layout& layout, const DeviceMesh& mesh);

}  // namespace shardprop
