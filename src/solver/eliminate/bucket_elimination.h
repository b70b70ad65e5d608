// Eliminates a whole network exactly, if its rows cannot overflow. It minimises
// over one variable after another; each step joins the neighbours of the
// variable in one table.
//
// Costs at or above the ceiling count as the ceiling. If the ceiling is at most
// kMostNarrowCost, costs are 32-bit integers; otherwise they are doubles. Sums
// are exact in both cases.
#pragma once

#include "base/budget.h"
#include "solver/eliminate/elimination_order.h"
#include "solver/model/network.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::solver {

inline constexpr double kMostNarrowCost = 0x1p30 - 1;

struct Eliminated {
  // Without the network's offset; the ceiling if no assignment costs less.
  double cost = 0;
  std::vector<int> choices;  // by network variable; 0 if not alive
};

// Returns nullopt if it was stopped. `order` must be the result of
// order_elimination() for the same network. With a finite ceiling, no cost may
// be negative. The result does not depend on the number of threads.
std::optional<Eliminated> eliminate_in_order(Network& network,
                                             const EliminationOrder& order,
                                             double ceiling, int threads,
                                             const Budget& budget,
                                             std::uint64_t& work);

// Runs on one thread and without a ceiling (+inf: infeasible). Returns nullopt
// if some table would touch more than `cap` entries, or all tables together
// more than 4 * cap.
std::optional<Eliminated> eliminate_all(Network& network, std::size_t cap,
                                        std::uint64_t& work);

}  // namespace shardprop::solver
