#include "plan/problem/layout_relations.h"

namespace shardprop {

bool gathers(const Layout& from, const Layout& to) {
  for (int m = 0; m < from.mesh_ndim(); ++m) {
    if (!to[m].is_replicate() && !(to[m] == from[m])) return false;
  }
  return true;
}

int mesh_dims_apart(const Layout& a, const Layout& b) {
  int apart = 0;
  for (int m = 0; m < a.mesh_ndim(); ++m) apart += a[m] == b[m] ? 0 : 1;
  return apart;
}

}  // namespace shardprop
