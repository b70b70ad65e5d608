// repeated_runs() finds the rows of equal blocks of a graph.
#pragma once

#include "graph/analysis/graph_structure.h"

#include <cstdint>
#include <vector>

namespace shardprop {

struct RepeatedRun {
  // [position][block]: the counterparts of one element. Forward elements come
  // first, and operands before their readers.
  std::vector<std::vector<GraphStructure::Element>> positions;
  std::uint64_t code = 0;

  std::size_t num_blocks() const { return positions.front().size(); }
};

// Runs have no element in common. Each block has at least one parameter. The
// runs are in the order of their depths.
std::vector<RepeatedRun> repeated_runs(const GraphStructure& structure);

}  // namespace shardprop
