// Elimination along one front, pruned by the dual bound: where messages no
// longer raise the bound and dense tables (late_elimination.h) would be too
// large, little of one table over a front can be part of anything cheaper than
// what is known. What is left at the end is the optimum; where the table had to
// be cut, the cut is a bound.
#pragma once

#include "solver/bound/search_state.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::solver {

class FrontElimination {
 public:
  // The network is reduced: no two edges join the same variables, and no cost
  // is below 0. `most_entries`: of the front in the first run.
  explicit FrontElimination(SearchState& state,
                            std::size_t most_entries = std::size_t{1} << 16)
      : state_(state), most_entries_(most_entries) {}

  // Where the bound has come near and rises slowly, on networks without memory
  // rows, and as much has been worked on the bound as it takes.
  bool is_due();
  void run();
  // Whether it closed much of the gap the last time and may hold more the next.
  bool is_closing() const { return closes_ && held_ < kMostEntries; }

 private:
  // Raises the bound, and offers what is cheaper than all that is known; what
  // the bound is in costs of the core. Nothing where it was stopped, would take
  // too long, or too many variables are known at a time.
  std::optional<double> eliminate(const std::vector<int>& order);
  void make_orders();
  // Whether the dual bound rises but slowly.
  bool has_settled();
  void wait(std::uint64_t before, double times);
  std::uint64_t most_work() const;

  SearchState& state_;
  // The same one forward and backward until it is known which does better.
  std::vector<std::vector<int>> orders_;
  double orders_gap_ = kInfinity;  // when they were made
  std::size_t most_entries_;
  std::size_t held_ = 0;  // in the last run, at most
  double next_dual_work_ = 0;
  double tried_gap_ = kInfinity;
  bool closes_ = false;
  // When it was last looked at how the bound rises.
  int looks_ = 0;
  double seen_work_ = 0;
  double seen_gap_ = kInfinity;
  bool settled_ = false;

  static constexpr std::size_t kMostEntries = std::size_t{1} << 24;
};

}  // namespace shardprop::solver
