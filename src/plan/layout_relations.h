// How two layouts of one tensor relate.
#pragma once

#include <shardprop/placement/layout.h>

namespace shardprop {

// Whether `to` is `from`, except that some mesh dims of `to` are replicated:
// what gathers and all-reduces lead to.
bool gathers(const Layout& from, const Layout& to);

// On how many mesh dims they differ.
int mesh_dims_apart(const Layout& a, const Layout& b);

}  // namespace shardprop
