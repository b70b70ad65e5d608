// FrontElimination eliminates along one front and prunes with the dual bound.
// It helps if messages no longer raise the bound and dense tables
// (late_elimination.h) would be too large. Few entries of one table over the
// front can then be part of a better assignment. The entry that is left at the
// end is the optimum. If the table had to be cut, the cut is a lower bound.
#pragma once

#include "solver/bound/search_state.h"
#include "solver/tuning.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::solver {

class FrontElimination {
 public:
  // Precondition: the network is reduced, no two edges join the same variables,
  // and no cost is below 0. `most_entries` is the size of the front in the
  // first run.
  explicit FrontElimination(SearchState& state,
                            std::size_t most_entries = std::size_t{1} << 16)
      : state_(state), most_entries_(most_entries) {}

  // Returns true on networks without memory rows, if the bound is near and
  // rises slowly. The dual must also have done as much work as the next run
  // requires. If the dual has stalled, the search must have done it.
  bool is_due();
  void run();
  // Returns whether the last run closed much of the gap and the next may hold
  // more.
  bool is_closing() const {
    return closes_ && held_ < tuning::kMostFrontEntries;
  }

 private:
  // Raises the bound, and offers an assignment that is cheaper than all known
  // ones. Returns the bound in costs of the core. Returns nullopt if it was
  // stopped, would take too long, or has too many variables in the front.
  std::optional<double> eliminate(const std::vector<int>& order);
  void make_orders();
  // Returns whether the dual bound rises slowly.
  bool has_settled();
  void wait(std::uint64_t before, double times);
  // Returns the work by which wait() measures.
  double waited() const;
  std::uint64_t most_work() const;

  SearchState& state_;
  // The order forward and backward, until it is known which one is better.
  std::vector<std::vector<int>> orders_;
  double orders_gap_ = kInfinity;  // gap when the orders were computed
  std::size_t most_entries_;
  std::size_t held_ = 0;  // most entries of the last run
  double next_work_ = 0;  // as waited() counts
  double tried_gap_ = kInfinity;
  bool closes_ = false;
  // The state of the last check of how the bound rises.
  int looks_ = 0;
  double seen_work_ = 0;
  double seen_gap_ = kInfinity;
  bool settled_ = false;
};

}  // namespace shardprop::solver
