// The tiny example graphs, and layouts to take their inputs in.
#pragma once

#include "support/result_checks.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>

#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace shardprop::testing {

// Paths, in order of their names.
inline std::vector<std::string> tiny_graph_files() {
  std::set<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator("examples/graphs/tiny")) {
    if (entry.path().extension() == ".gz") files.insert(entry.path().string());
  }
  return {files.begin(), files.end()};
}

// Sharded at random, as often as not.
inline Layout some_layout(const DeviceMesh& mesh, const TensorMeta& meta,
                          std::mt19937_64& random) {
  Layout out = Layout::replicated(mesh.ndim());
  for (int m = 0; m < mesh.ndim(); ++m) {
    if (meta.rank() == 0 || random() % 2 == 0) continue;
    const int dim =
        static_cast<int>(random() % static_cast<unsigned>(meta.rank()));
    out = value_of(out.with(m, Placement::shard(dim)));
  }
  return out;
}

}  // namespace shardprop::testing
