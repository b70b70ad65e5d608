// Probing tests whether an assignment costs less than a target between the
// bound and the best known cost. So near to the bound, pruning leaves little of
// the network. Elimination then decides: the cheapest assignment of the rest
// becomes the best known one. No assignment costs less than it or the target.
#pragma once

#include "solver/bound/search_state.h"

#include <cstddef>

namespace shardprop::solver {

class Probing {
 public:
  explicit Probing(SearchState& state) : state_(state) {}

  // Returns whether the gap has shrunk since the last probe. Precondition:
  // bytes do not bind the network.
  bool is_due() const;
  // Does nothing if the rest would be almost the same as last time and too
  // large for elimination.
  void run();

 private:
  double most_touched() const;
  void probe(double target);

  SearchState& state_;
  double wanted_ = 0;  // choices to keep
  double seen_gap_ = kInfinity;
  double next_gap_ = kInfinity;
};

}  // namespace shardprop::solver
