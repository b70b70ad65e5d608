// PrunedRoot: what is left of the network without the choices that cannot be
// part of anything below a target.
#pragma once

#include "solver/model/network.h"
#include "solver/bound/search_state.h"

#include <cstddef>
#include <vector>

namespace shardprop::solver {

struct PrunedRoot {
  // Of the network's living variables, in their order.
  PrunedRoot(SearchState& state, double target);

  std::size_t num_choices() const;

  std::vector<int> variable;  // of the state's network, by the root's
  Network network;
};

}  // namespace shardprop::solver
