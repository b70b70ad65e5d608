// Path is a sequence of moves between layouts. Label is the number that orders
// paths.
#pragma once

#include "redistribute/moves.h"
#include "redistribute/sharding_state.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace shardprop::redistribute {

// Label combines nanoseconds (high) and steps (low) in one number, so that one
// comparison orders two paths. A cheapest path over distinct layouts has fewer
// than 64 steps. Times stay below 2^55 ns, about a year.
using Label = std::int64_t;
inline constexpr Label kUnreached = std::numeric_limits<Label>::max() / 4;
constexpr Label label_of(std::int64_t nanoseconds, std::int64_t steps) {
  return nanoseconds * 64 + steps;
}
constexpr std::int64_t nanoseconds_of(Label label) { return label / 64; }

struct PathStep {
  Move move;
  Mask group;
  State from;
  State to;
};

struct Path {
  std::int64_t nanoseconds = 0;
  std::vector<PathStep> steps;
  bool is_least = true;  // false if the search gave up
};

}  // namespace shardprop::redistribute
