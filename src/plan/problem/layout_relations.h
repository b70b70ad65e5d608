// Functions that compare two layouts of one tensor.
#pragma once

#include <shardprop/placement/layout.h>

namespace shardprop {

// Returns whether `to` equals `from` except for mesh dims that `to` replicates.
// Gathers and all-reduces lead to such layouts.
bool gathers(const Layout& from, const Layout& to);

// Returns the number of mesh dims whose placements differ.
int mesh_dims_apart(const Layout& a, const Layout& b);

}  // namespace shardprop
