// Shortest paths over layouts: states are made as the search reaches them.
#pragma once

#include "redistribute/layout_graph.h"
#include "redistribute/move_price.h"
#include "redistribute/moves.h"
#include "redistribute/sharding_state.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace shardprop::redistribute {

struct PathStep {
  Move move;
  Mask group;
  State from;
  State to;
};

struct Path {
  std::int64_t nanoseconds = 0;
  std::vector<PathStep> steps;
};

struct SearchProblem {
  const ActiveDims& active;
  const Alphabet& alphabet;
  const GroupTimes& times;
  const DeviceMesh& mesh;
  const TensorMeta& meta;
  std::optional<std::int64_t> memory_limit;
  const LayoutGraph* graph;  // of the alphabet; may be null
  // The search is given up beyond this many moves. Only moves of alphabets
  // with strided shards count.
  std::size_t most_moves = std::numeric_limits<std::size_t>::max();
};

// A path of least cost, and of fewest steps among those; always the same one.
// Nothing when the memory limit leaves no path, or the search is given up.
std::optional<Path> shortest_path(const SearchProblem& problem,
                                  const State& source, const State& target);

}  // namespace shardprop::redistribute
