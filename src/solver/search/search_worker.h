// One thread's local search: annealing cycles over the core.
//
// A worker digs, from the best assignment any has found, until cycles find
// little. Then it explores: it starts afresh from what the dual suggests and
// keeps to itself what comes of that for as long as it gets better, since a new
// valley takes some cycles to beat an old one. Either way, what it has is put
// together with the best.
#pragma once

#include "solver/presolve/core.h"
#include "solver/search/forest_search.h"
#include "solver/model/stop_signal.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shardprop::solver {

// Of every variable the choice that holds the fewest bytes, summed over rows,
// and of those the cheapest.
std::vector<int> leanest(const Core& core);

class SearchWorker {
 public:
  SearchWorker(const Core& core, std::uint64_t seed);

  // Where the next cycles start and by which prices they steer.
  struct Guide {
    const std::vector<int>* best = nullptr;  // of all threads; may be null
    double best_cost = kInfinity;
    double bound = -kInfinity;
    const std::vector<int>* decoded = nullptr;    // the dual's
    const std::vector<double>* prices = nullptr;  // may be null
    // The dual still finds much better prices: look briefly, start afresh.
    bool settling = false;
    // Whether to leave digging when it finds little.
    bool may_explore = true;
  };
  // Between rounds only: takes up the guide when a cycle has ended.
  void guide(const Guide& guide);
  void run(std::uint64_t work, const StopSignal& stop);

  const std::vector<int>& best() const {
    return search_.best_cost() < best_.cost ? search_.best() : best_.choices;
  }
  double best_cost() const { return std::min(search_.best_cost(), best_.cost); }
  std::uint64_t work() const { return search_.work() + recombination_work_; }

 private:
  struct Found {
    std::vector<int> choices;  // empty: nothing
    double cost = kInfinity;
  };
  void recombine_into(Found& found, const std::vector<int>& other, double cost);
  void end_cycle(const Guide& guide);
  void start_cycle(const Guide& guide);

  const Core& core_;
  Rng rng_;
  ForestSearch search_;
  Found best_;  // as far as this worker knows
  Found own_;   // what the next cycle starts from
  bool exploring_ = false;
  bool found_little_ = false;  // in the last cycle
  std::uint64_t recombination_work_ = 0;
  bool in_cycle_ = false;
  int cycles_ = 0;
  int dug_ = 0;       // long cycles
  int explored_ = 0;  // the same, since it started afresh
  std::uint64_t cycle_start_ = 0;
  double cycle_work_ = 0;
  double hottest_ = 0;
};

}  // namespace shardprop::solver
