#include "placement/single_ranks.h"

#include <shardprop/base/error.h>

#include <utility>

namespace shardprop {

Layout without_single_ranks(const Layout& layout, const DeviceMesh& mesh) {
  Layout out = layout;
  for (int m = 0; m < mesh.ndim(); ++m) {
    if (mesh.size(m) > 1 || out[m].is_replicate()) continue;
    auto without = out.with(m, Placement::replicate());
    if (!without) throw InternalError("R does not fit a layout");
    out = *std::move(without);
  }
  return out;
}

}  // namespace shardprop
