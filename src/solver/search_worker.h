// One thread's local search: annealing cycles over the core, each from the
// best assignment known or from what the dual suggests.
#pragma once

#include "solver/core.h"
#include "solver/forest_search.h"
#include "solver/stop_signal.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shardprop::solver {

class SearchWorker {
 public:
  SearchWorker(const Core& core, std::uint64_t seed);

  // Where the next cycles start and by which prices they steer.
  struct Guide {
    const std::vector<int>* best = nullptr;  // of all threads; may be null
    double best_cost = kInfinity;
    const std::vector<int>* decoded = nullptr;    // the dual's
    const std::vector<double>* prices = nullptr;  // may be null
    // The dual still finds much better prices: look briefly, start afresh.
    bool settling = false;
  };
  // Between rounds only: takes up the guide when a cycle has ended.
  void guide(const Guide& guide);
  void run(std::uint64_t work, const StopSignal& stop);

  const std::vector<int>& best() const {
    return search_.best_cost() < best_cost_ ? search_.best() : best_;
  }
  double best_cost() const { return std::min(search_.best_cost(), best_cost_); }
  std::uint64_t work() const { return search_.work() + recombination_work_; }

 private:
  std::vector<int> put_together(const std::vector<int>& best);

  const Core& core_;
  Rng rng_;
  ForestSearch search_;
  std::vector<int> best_;  // put together at the end of a cycle
  double best_cost_ = kInfinity;
  std::uint64_t recombination_work_ = 0;
  bool in_cycle_ = false;
  int cycles_ = 0;
  int long_cycles_ = 0;
  std::uint64_t cycle_start_ = 0;
  double cycle_work_ = 0;
  double hottest_ = 0;
};

}  // namespace shardprop::solver
