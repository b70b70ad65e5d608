// Puts the best of two assignments together (partition crossover).
//
// The variables where two assignments differ fall into groups with no edge
// between them. Each group may be taken from either assignment: what it adds to
// the cost does not depend on the others, and only memory ties them together.
#pragma once

#include "solver/presolve/core.h"

#include <cstdint>
#include <vector>

namespace shardprop::solver {

struct Recombined {
  std::vector<int> choices;
  double cost_change = 0;  // from a; never above 0 or b's
  std::uint64_t work = 0;
};

// Both must be feasible. Groups are swapped one by one, and in chains where one
// needs bytes that others can give, until no swap pays.
Recombined recombine(const Core& core, const std::vector<int>& a,
                     const std::vector<int>& b);

}  // namespace shardprop::solver
