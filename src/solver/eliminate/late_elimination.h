// Elimination in the course of a search: what would have taken too long at
// first is tried when as much has been spent on searching, or when pruning has
// left little.
#pragma once

#include "solver/bound/pruned_root.h"
#include "solver/bound/search_state.h"

namespace shardprop::solver {

// Solves what pruning has left without a search, where bytes do not matter and
// tables stay small: what it finds is the best known then, and nothing costs
// less than that or `target`, below which pruning has kept all there is. False
// when tables would be too large.
bool eliminate_rest(SearchState& state, const PrunedRoot& root,
                    double most_touched, Int128 below);

class LateElimination {
 public:
  explicit LateElimination(SearchState& state) : state_(state) {}

  // Bytes do not bind the network.
  void allow() { may_run_ = true; }
  bool is_due();
  void run();

 private:
  // What it would take.
  void estimate();

  SearchState& state_;
  bool may_run_ = false;
  bool is_estimated_ = false;
  // Table entries; infinite where that is out of reach.
  double touches_ = kInfinity;
};

}  // namespace shardprop::solver
