// Exact elimination of a whole network whose rows cannot overflow: variables
// go one by one, each minimised over, its neighbours joined in one table.
#pragma once

#include "solver/network.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::solver {

struct Eliminated {
  double cost = 0;           // without the network's offset; +inf: infeasible
  std::vector<int> choices;  // by network variable; 0 where it is not alive
};

// Nothing when some table on the way would hold more than `cap` entries or the
// tables together more than 4 * cap.
std::optional<Eliminated> eliminate_all(Network& network, std::size_t cap,
                                        std::uint64_t& work);

}  // namespace shardprop::solver
