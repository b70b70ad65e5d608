// Branching decides when a search runs branch and bound and on which network,
// and it collects the results.
#pragma once

#include "solver/bound/search_state.h"
#include "solver/search/branch_and_bound.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop::solver {

class Branching {
 public:
  explicit Branching(SearchState& state) : state_(state) {}

  // Returns true once the dual bound has settled, or after two rounds on small
  // problems. It is true again if a better cost or bound allows more pruning
  // early in the search.
  bool is_due(int rounds) const;
  // Removes choices that cannot be part of a better assignment. Branches on the
  // rest if it is small.
  void start();

  bool is_open() const { return tree_ && !tree_->done(); }
  void run(std::uint64_t work);
  // Takes the result of the tree, and tells the tree the best known cost.
  // Returns the choices on the core if they are the best so far; otherwise an
  // empty list.
  std::vector<int> gather();
  // Records the work of the tree. Call this once, at the end of the search.
  void finish();
  std::uint64_t work() const { return tree_ ? tree_->work() : 0; }

 private:
  SearchState& state_;
  std::unique_ptr<BranchAndBound> tree_;
  std::vector<int> variable_;  // variable of the network, by the tree's
  bool tried_ = false;
  Int128 tried_below_ = Incumbent::kNoCost;
  double tried_gap_ = kInfinity;
};

}  // namespace shardprop::solver
