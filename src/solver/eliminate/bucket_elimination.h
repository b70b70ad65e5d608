// Exact elimination of a whole network whose rows cannot overflow: variables
// go one by one, each minimised over, its neighbours joined in one table.
//
// What costs as much as a ceiling is of no interest and counts as the ceiling.
// Under a ceiling of kMostNarrowCost costs are 32-bit integers, else doubles;
// sums are exact either way.
#pragma once

#include "solver/eliminate/elimination_order.h"
#include "solver/model/network.h"
#include "solver/model/stop_signal.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::solver {

inline constexpr double kMostNarrowCost = 0x1p30 - 1;

struct Eliminated {
  // Without the network's offset; the ceiling when nothing costs less.
  double cost = 0;
  std::vector<int> choices;  // by network variable; 0 where it is not alive
};

// Nothing when it was stopped. `order` must be order_elimination()'s of the
// same network; with a finite ceiling no cost may be negative. The answer is
// the same for any number of threads.
std::optional<Eliminated> eliminate_in_order(Network& network,
                                             const EliminationOrder& order,
                                             double ceiling, int threads,
                                             const StopSignal& stop,
                                             std::uint64_t& work);

// On one thread and without a ceiling (+inf: infeasible). Nothing when some
// table on the way would touch more than `cap` entries or all together more
// than 4 * cap.
std::optional<Eliminated> eliminate_all(Network& network, std::size_t cap,
                                        std::uint64_t& work);

}  // namespace shardprop::solver
