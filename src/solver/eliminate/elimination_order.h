// In which order exact elimination takes the variables, and what that takes.
//
// Eliminating a variable joins its neighbours in one table; how large the
// tables become is decided by the order. The best one is hard to find, so
// several greedy rules are tried, with ties broken at random, and the order
// that touches least is taken.
#pragma once

#include "solver/model/network.h"
#include "solver/model/stop_signal.h"

#include <optional>
#include <vector>

namespace shardprop::solver {

struct EliminationOrder {
  std::vector<int> variables;
  double touched = 0;  // entries looked at, each once per choice minimised over
  double largest = 0;  // of that, by one variable
  double kept = 0;     // entries of all tables made
};

struct EliminationLimits {
  double touched = 0;  // of one variable; all together may take four times that
  double kept = 0;
};

// Nothing when every order tried exceeds a limit or none was found in as many
// steps as are allowed. The same network, the same order, unless it was
// stopped.
std::optional<EliminationOrder> order_elimination(
    Network& network, const EliminationLimits& limits, const StopSignal& stop);

}  // namespace shardprop::solver
