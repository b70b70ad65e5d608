// Finds the order in which exact elimination takes the variables, and its cost.
//
// Eliminating a variable joins its neighbours in one table. The order
// determines how large the tables become. The best order is hard to find, so
// several greedy rules with random tie-breaking are tried. The order that
// touches the fewest entries wins.
#pragma once

#include "base/budget.h"
#include "solver/model/network.h"

#include <optional>
#include <vector>

namespace shardprop::solver {

struct EliminationOrder {
  std::vector<int> variables;
  double touched = 0;  // entries read, each once per choice minimised over
  double largest = 0;  // largest share of one variable
  double kept = 0;     // entries of all resulting tables
};

struct EliminationLimits {
  double touched = 0;  // of one variable; all may touch four times that
  double kept = 0;
};

// Returns nullopt if every order exceeds a limit, or if the steps run out
// before one is found. The result is deterministic unless it was stopped.
std::optional<EliminationOrder> order_elimination(
    Network& network, const EliminationLimits& limits, const Budget& budget);

}  // namespace shardprop::solver
