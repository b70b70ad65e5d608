// PrunedRoot is the network without the choices that cannot be part of an
// assignment below a target.
#pragma once

#include "solver/bound/search_state.h"
#include "solver/model/network.h"

#include <cstddef>
#include <vector>

namespace shardprop::solver {

struct PrunedRoot {
  // Contains the network's living variables, in order.
  PrunedRoot(SearchState& state, double target);

  std::size_t num_choices() const;

  std::vector<int> variable;  // variable of the state's network, by the root's
  Network network;
};

}  // namespace shardprop::solver
