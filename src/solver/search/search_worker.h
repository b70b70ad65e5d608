// SearchWorker is the local search of one thread. It runs annealing cycles over
// the core.
//
// A worker first improves the best assignment of all workers until cycles find
// little. Then it explores: it starts again from the dual's choices. It keeps
// its results to itself as long as they improve, because a new region takes
// some cycles to beat an old one. In both modes, it recombines its results with
// the best assignment.
#pragma once

#include "base/budget.h"
#include "solver/presolve/core.h"
#include "solver/presolve/pass_table.h"
#include "solver/search/forest_search.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shardprop::solver {

// Returns, for every variable, the choice with the fewest bytes, summed over
// rows. On a tie, it returns the cheapest one.
std::vector<int> leanest(const Core& core);

class SearchWorker {
 public:
  // Without `recombines`, the cheaper of two assignments is kept as it is.
  SearchWorker(const Core& core, std::uint64_t seed, bool recombines = true);

  // Guide is the start of the next cycles and the prices that guide them.
  struct Guide {
    const std::vector<int>* best = nullptr;  // of all threads; may be null
    double best_cost = kInfinity;
    double bound = -kInfinity;
    const std::vector<int>* decoded = nullptr;    // the dual's
    const std::vector<double>* prices = nullptr;  // may be null
    // The dual still finds much better prices: run short cycles and start
    // again.
    bool settling = false;
    // Whether the worker may explore when it finds little.
    bool may_explore = true;
  };
  // Call this between rounds only. It applies the guide when a cycle has ended.
  void guide(const Guide& guide);
  void run(std::uint64_t work, const Budget& budget);

  const std::vector<int>& best() const {
    return search_.best_cost() < best_.cost ? search_.best() : best_.choices;
  }
  double best_cost() const { return std::min(search_.best_cost(), best_.cost); }
  std::uint64_t work() const { return search_.work() + recombination_.work; }
  // One unit of the core's costs is `unit` of the problem's.
  void record_recombination(PassTable& passes, std::int64_t unit) const;

 private:
  struct Found {
    std::vector<int> choices;  // empty: none
    double cost = kInfinity;
  };
  void recombine_into(Found& found, const std::vector<int>& other, double cost);
  void end_cycle(const Guide& guide);
  void start_cycle(const Guide& guide);

  const Core& core_;
  Rng rng_;
  ForestSearch search_;
  Found best_;  // as far as this worker knows
  Found own_;   // start of the next cycle
  bool exploring_ = false;
  bool found_little_ = false;  // in the last cycle
  bool recombines_ = true;
  Procedure recombination_;
  bool in_cycle_ = false;
  int cycles_ = 0;
  int dug_ = 0;       // long cycles
  int explored_ = 0;  // long cycles since it started to explore
  std::uint64_t cycle_start_ = 0;
  double cycle_work_ = 0;
  double hottest_ = 0;
};

}  // namespace shardprop::solver
