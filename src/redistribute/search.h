// Finds the shortest path between two layouts.
#pragma once

#include "redistribute/layout_graph.h"
#include "redistribute/move_price.h"
#include "redistribute/path.h"
#include "redistribute/sharding_state.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shardprop::redistribute {

// This limit allows some seconds of search.
inline constexpr std::size_t kMostMoves = 100'000'000;

struct SearchProblem {
  const ActiveDims& active;
  const Alphabet& alphabet;
  const GroupTimes& times;
  const DeviceMesh& mesh;
  const TensorMeta& meta;
  std::optional<std::int64_t> memory_limit;
  const LayoutGraph* graph;  // graph of the alphabet; may be null
  // The search gives up after this many moves. Moves that a graph lists do not
  // count.
  std::size_t most_moves = kMostMoves;
};

// Returns a path of least cost; on a tie the one with the fewest steps. The
// result is deterministic. If the search gives up, it returns the best path
// that it found. Returns nullopt if the memory limit leaves no path, or if it
// found none with strided shards.
std::optional<Path> shortest_path(const SearchProblem& problem,
                                  const State& source, const State& target);

}  // namespace shardprop::redistribute
