// LateElimination runs elimination during a search. It tries a network that
// took too long at first when the search has spent as much work, or when
// pruning has left little.
#pragma once

#include "solver/bound/pruned_root.h"
#include "solver/bound/search_state.h"

namespace shardprop::solver {

// Solves the pruned network exactly, if bytes do not matter and tables stay
// small. Its result is then the best known assignment. No assignment costs less
// than this result or `target`, below which pruning has kept every assignment.
// Returns false if tables would be too large.
bool eliminate_rest(SearchState& state, const PrunedRoot& root,
                    double most_touched, Int128 below);

class LateElimination {
 public:
  explicit LateElimination(SearchState& state) : state_(state) {}

  // Call this if bytes do not bind the network.
  void allow() { may_run_ = true; }
  bool is_due();
  void run();

 private:
  // Estimates the work of elimination.
  void estimate();

  SearchState& state_;
  bool may_run_ = false;
  bool is_estimated_ = false;
  // table entries; infinite if elimination is out of reach
  double touches_ = kInfinity;
};

}  // namespace shardprop::solver
