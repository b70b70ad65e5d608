// Probing: is there anything cheaper than a target that lies between the bound
// and the best known cost? So near the bound little is left of the network once
// it is pruned, and elimination settles it either way: the cheapest of what is
// left is the best known from then on, and nothing costs less than it or the
// target.
#pragma once

#include "solver/bound/search_state.h"

#include <cstddef>

namespace shardprop::solver {

class Probing {
 public:
  explicit Probing(SearchState& state) : state_(state) {}

  // Whether the bound has come nearer since; on networks that bytes do not
  // bind.
  bool is_due() const;
  // Nothing, where what was left would be much the same as the last time and
  // more than elimination can take.
  void run();

 private:
  double most_touched() const;
  void probe(double target);

  SearchState& state_;
  double wanted_ = 0;  // choices to be left
  double seen_gap_ = kInfinity;
  double next_gap_ = kInfinity;
};

}  // namespace shardprop::solver
