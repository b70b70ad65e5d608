// Incumbent stores the best assignment so far, verified by the checker, and a
// lower bound on the cost of any assignment.
#pragma once

#include <shardprop/solver/problem.h>
#include <shardprop/solver/solve.h>

#include "solver/model/network.h"

#include <optional>
#include <vector>

namespace shardprop::solver {

class Incumbent {
 public:
  // Both arguments must outlive the object. `network` represents `problem`; its
  // unit and offset are read when needed.
  Incumbent(const Problem& problem, const Network& network)
      : problem_(problem), network_(network) {}

  bool known() const { return cost_.has_value(); }
  // Precondition: known().
  Int128 cost() const { return *cost_; }
  const Assignment& assignment() const { return assignment_; }
  const std::optional<Int128>& bound() const { return bound_; }

  bool infeasible() const { return infeasible_; }
  bool proven() const {
    return infeasible_ || (cost_ && bound_ && *bound_ >= *cost_);
  }

  // State is what an incumbent knows at one moment.
  struct State {
    std::optional<Int128> cost;
    std::optional<Int128> bound;
    bool infeasible = false;
    friend bool operator==(const State&, const State&) = default;
  };
  State state() const { return {cost_, bound_, infeasible_}; }
  // Returns the fall of (cost - bound) since `before`; 0 if one of them was
  // unknown then.
  Int128 gap_closed_since(const State& before) const {
    if (!before.cost || !before.bound || !cost_ || !bound_) return 0;
    return (*before.cost - *cost_) + (*bound_ - *before.bound);
  }

  // Returns the cost in the network's units, rounded up: an assignment of this
  // many units is not better. Returns kNoCost if no assignment is known.
  Int128 cost_in_units() const;
  static constexpr Int128 kNoCost = Int128{1} << 120;

  // Stores the choices of all variables of the network if they are the best so
  // far.
  void offer(std::vector<int> choices);
  // Stores an assignment of the full problem if it is feasible and the best so
  // far.
  void offer_known(const Assignment& known);
  // Records that no assignment costs less than `units`.
  void raise_bound(Int128 units);
  // Records that the search is complete and no assignment costs less than
  // `units`. If no assignment is known, the problem is infeasible.
  void close(Int128 units);

 private:
  const Problem& problem_;
  const Network& network_;
  std::optional<Int128> cost_;
  Assignment assignment_;
  std::optional<Int128> bound_;
  bool infeasible_ = false;
};

}  // namespace shardprop::solver
