// PlanSpace: which of the ways to lay a graph out a plan is chosen from:
// the named space (docs/planning.md), or a part of it that is set up and searched
// in a fraction of the time.
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
  // An operator gives mesh dims larger than 1 in at most so many runs of
  // neighbours to the same; then neighbours that source and target of a
  // redistribution treat alike move together. The named space where empty.
  std::optional<int> most_runs;
  // Bit m: an operator gives mesh dim m and the mesh dim before it to the same
  // factor, as on the mesh where both dims are one. 0 in the named space. On
  // [2,2,2] with two runs, bit 1 keeps S(0),S(0),S(1) and drops S(0),R,R.
  std::uint32_t joined_dims = 0;

  bool is_named() const { return !most_runs.has_value(); }
  friend bool operator==(const PlanSpace&, const PlanSpace&) = default;
};

// "all replicated", "mesh dims in one run", "mesh dims in at most 2 runs", "mesh
// dims 0, 1 as one, in at most 2 runs"; "" of the named space.
std::string to_string(const PlanSpace& space);

}  // namespace shardprop
