// Shortest paths over layouts: states are made as the search reaches them.
#pragma once

#include "redistribute/layout_graph.h"
#include "redistribute/move_price.h"
#include "redistribute/moves.h"
#include "redistribute/sharding_state.h"

#include <cstddef>
#include <cstdint>
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
  bool is_least = true;  // false where the search was given up
};

// Some seconds of search.
inline constexpr std::size_t kMostMoves = 100'000'000;

struct SearchProblem {
  const ActiveDims& active;
  const Alphabet& alphabet;
  const GroupTimes& times;
  const DeviceMesh& mesh;
  const TensorMeta& meta;
  std::optional<std::int64_t> memory_limit;
  const LayoutGraph* graph;  // of the alphabet; may be null
  // The search is given up beyond this many moves; moves that are listed in a
  // graph do not count.
  std::size_t most_moves = kMostMoves;
};

// A path of least cost, and of fewest steps among those; always the same one.
// Where the search is given up the best one that was found. Nothing when the
// memory limit leaves no path, or with strided shards none was found.
std::optional<Path> shortest_path(const SearchProblem& problem,
                                  const State& source, const State& target);

}  // namespace shardprop::redistribute
