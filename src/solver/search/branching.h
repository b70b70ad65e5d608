// Branching: when branch and bound is worth its turns in a search, on what,
// and what comes of it.
#pragma once

#include "solver/search/branch_and_bound.h"
#include "solver/bound/search_state.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop::solver {

// Choices of a core that is solved before long.
inline constexpr std::size_t kSmallChoices = 4096;

class Branching {
 public:
  explicit Branching(SearchState& state) : state_(state) {}

  // Once the dual has done what it can, at once on small problems, and again
  // when a better assignment lets more be dropped early in the search.
  bool is_due(int rounds) const;
  // Drops what cannot be part of a better assignment, and branches on the rest
  // if that is small.
  void start();

  bool is_open() const { return tree_ && !tree_->done(); }
  void run(std::uint64_t work);
  // Takes up what was found, and tells what was found elsewhere. The choices
  // on the core, if they are the best so far; else none.
  std::vector<int> gather();
  std::uint64_t work() const { return tree_ ? tree_->work() : 0; }

 private:
  SearchState& state_;
  std::unique_ptr<BranchAndBound> tree_;
  std::vector<int> variable_;  // of the network, by the tree's
  bool tried_ = false;
  Int128 tried_below_ = Incumbent::kNoCost;
  double tried_gap_ = kInfinity;
};

}  // namespace shardprop::solver
