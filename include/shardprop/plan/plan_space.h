// `PlanSpace` is the set of layouts from which a plan is chosen. It is the
// named space (docs/how_planning_works.md), or a part of it that is much faster
// to set up and search.
//
//   relu f32[16,8] on [2,2,2]
//     no runs       R,R,R
//     one run       R,R,R  S(0),S(0),S(0)  S(1),S(1),S(1)  P...
//     two runs      also S(0),R,R  S(0),S(0),S(1)  R,S(1),S(1) ...
//     named space   also S(0),R,S(0)  S(0),S(1),S(0) ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardprop {

struct PlanSpace {
  // Maximum number of runs; empty in the named space. A run is adjacent mesh
  // dims larger than 1 to which an operator gives the same target. Adjacent
  // mesh dims that source and target of a redistribution treat alike then move
  // together.
  std::optional<int> most_runs;
  // Bit m: an operator gives mesh dim m and the mesh dim before it the same
  // factor, as if both were one dim. 0 in the named space. On [2,2,2] with two
  // runs, bit 1 keeps S(0),S(0),S(1) and drops S(0),R,R.
  std::uint32_t joined_dims = 0;

  bool is_named() const { return !most_runs.has_value(); }
  friend bool operator==(const PlanSpace&, const PlanSpace&) = default;
};

// Prints "all replicated", "mesh dims in one run", "mesh dims in at most 2
// runs", "mesh dims 0, 1 as one, in at most 2 runs"; "" for the named space.
std::string to_string(const PlanSpace& space);

}  // namespace shardprop
