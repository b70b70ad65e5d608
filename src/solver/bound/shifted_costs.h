// The core's costs, moved towards the variables that are met first.
//
// Messages of the dual bound rewrite costs without changing any sum. Here what
// is left at a variable moves on to its neighbours that are met before it, the
// last variable first:
//
//   cost of an assignment = least + sum over edges of what is left of them,
//                                   none of it below 0
//                         + what is left at variables without an earlier
//                           neighbour, none of it below 0
//
// and the sum over edges between variables that have been met is a bound from
// below, beyond `least`, on any completion: all that is known of the rest has
// moved into it.
#pragma once

#include "solver/bound/dual_bound.h"
#include "solver/presolve/core.h"

#include <cstdint>
#include <vector>

namespace shardprop::solver {

class ShiftedCosts {
 public:
  // At the dual's best messages; the core has no memory rows. `met`: the order
  // in which its variables are met.
  ShiftedCosts(const Core& core, const DualBound& dual,
               const std::vector<int>& met);

  // In quanta of the dual, as everything here.
  std::int64_t least() const { return least_; }
  // Of an edge, rows: choices of the core edge's `a`.
  const std::vector<std::int64_t>& edge(int e) const {
    return edges_[static_cast<std::size_t>(e)];
  }
  // Zeros where some neighbour is met earlier.
  const std::vector<std::int64_t>& variable(int v) const {
    return variables_[static_cast<std::size_t>(v)];
  }
  // Entries touched.
  std::uint64_t work() const { return work_; }

 private:
  void take_messages(const DualBound& dual);
  void drain(int v, const std::vector<int>& place);

  const Core& core_;
  // At once, so that sums stay exact; what does not move stays where it is,
  // which only weakens the bound.
  std::int64_t most_moved_;
  std::int64_t least_ = 0;
  std::uint64_t work_ = 0;
  std::vector<std::vector<std::int64_t>> edges_;
  std::vector<std::vector<std::int64_t>> variables_;
};

}  // namespace shardprop::solver
