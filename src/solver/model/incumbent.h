// What is known of the optimum: the best assignment so far, judged by the
// checker, and the least that any assignment can cost.
#pragma once

#include <shardprop/solver/problem.h>
#include <shardprop/solver/solve.h>

#include "solver/model/network.h"

#include <optional>
#include <vector>

namespace shardprop::solver {

class Incumbent {
 public:
  // Both must outlive it. `network` stands for `problem`; its unit and offset
  // are read when they are needed.
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

  // The cost in the network's units, rounded up: what costs as much in units is
  // no better. kNoCost where no assignment is known.
  Int128 cost_in_units() const;
  static constexpr Int128 kNoCost = Int128{1} << 120;

  // Keeps a choice for every variable of the network if it is the best so far.
  void offer(std::vector<int> choices);
  // Keeps an assignment of the whole problem if it holds and is the best so far.
  void offer_known(const Assignment& known);
  // No assignment costs less than so many units.
  void raise_bound(Int128 units);
  // All has been searched: nothing costs less than so many units, and where
  // nothing is known there is nothing.
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
