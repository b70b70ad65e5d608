// Shortest paths over layouts: states are made as the search reaches them.
#pragma once

#include "redistribute/move_price.h"
#include "redistribute/moves.h"
#include "redistribute/sharding_state.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::redistribute {

// Layout states found so far, by code.
class StateIndex {
 public:
  StateIndex() : slots_(256, kEmpty) {}

  // The number of `state`, and whether it is new.
  std::pair<std::uint32_t, bool> insert(const State& state);
  std::optional<std::uint32_t> find(const State& state) const;
  const std::vector<State>& states() const { return states_; }

 private:
  static constexpr std::uint32_t kEmpty = 0xffffffffU;
  void grow();
  std::vector<State> states_;
  std::vector<std::uint32_t> slots_;
};

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
};

// A path of least cost, and of fewest steps among those; always the same one.
// Nothing when the memory limit leaves no path.
std::optional<Path> shortest_path(const SearchProblem& problem,
                                  const State& source, const State& target);

}  // namespace shardprop::redistribute
