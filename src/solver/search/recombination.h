// recombine() combines the best parts of two assignments (partition crossover).
//
// The variables in which two assignments differ form groups with no edge
// between them. Each group may come from either assignment, because its cost
// does not depend on the other groups. Only memory connects the groups.
#pragma once

#include "solver/presolve/core.h"

#include <cstdint>
#include <vector>

namespace shardprop::solver {

struct Recombined {
  std::vector<int> choices;
  double cost_change = 0;  // from a; at most 0 and at most b's
  std::uint64_t work = 0;
};

// Both assignments must be feasible. Groups are swapped one by one. If a swap
// needs bytes, a chain of swaps of other groups may free them. The function
// ends when no swap reduces the cost.
Recombined recombine(const Core& core, const std::vector<int>& a,
                     const std::vector<int>& b);

}  // namespace shardprop::solver
