// ShiftedCosts are the core's costs, moved towards the variables that are met
// first.
//
// Messages of the dual bound move costs without changing any sum. ShiftedCosts
// then moves the remaining cost of each variable to the neighbours that are met
// before it. The last variable moves first.
//
//   cost of an assignment = least + sum over edges of their remaining costs,
//                                   all at least 0
//                         + remaining costs of variables without an earlier
//                           neighbour, all at least 0
//
// The sum over edges between met variables is a lower bound, beyond `least`, on
// any completion. All known costs of the other variables have moved into it.
#pragma once

#include "solver/bound/dual_bound.h"
#include "solver/presolve/core.h"

#include <cstdint>
#include <vector>

namespace shardprop::solver {

class ShiftedCosts {
 public:
  // Uses the dual's best messages. Precondition: the core has no memory rows.
  // `met` is the order in which its variables are met.
  ShiftedCosts(const Core& core, const DualBound& dual,
               const std::vector<int>& met);

  // All costs here are in quanta of the dual.
  std::int64_t least() const { return least_; }
  // Costs of an edge; rows are the choices of the core edge's `a`.
  const std::vector<std::int64_t>& edge(int e) const {
    return edges_[static_cast<std::size_t>(e)];
  }
  // Costs of a variable; zeros if some neighbour is met earlier.
  const std::vector<std::int64_t>& variable(int v) const {
    return variables_[static_cast<std::size_t>(v)];
  }
  // Returns the number of touched entries.
  std::uint64_t work() const { return work_; }

 private:
  void take_messages(const DualBound& dual);
  void drain(int v, const std::vector<int>& place);

  const Core& core_;
  // The most that moves at once, so that sums stay exact. A rest that does not
  // move only weakens the bound.
  std::int64_t most_moved_;
  std::int64_t least_ = 0;
  std::uint64_t work_ = 0;
  std::vector<std::vector<std::int64_t>> edges_;
  std::vector<std::vector<std::int64_t>> variables_;
};

}  // namespace shardprop::solver
