// Solver runs the procedures of one solve() in turn: passes that make the
// network smaller, then rounds of the dual bound, local search, branch and
// bound, and eliminations that become due.
#pragma once

#include <shardprop/solver/solve.h>

#include "solver/bound/dual_ascent.h"
#include "solver/bound/search_state.h"
#include "solver/eliminate/front_elimination.h"
#include "solver/eliminate/late_elimination.h"
#include "solver/search/branching.h"
#include "solver/search/probing.h"
#include "solver/search/search_worker.h"
#include "solver/tuning.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace shardprop::solver {

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options,
         bool sums_fit = false)
      : options_(options), state_(problem, options, sums_fit) {}

  Solution run();
  // Returns true if the possible costs exceed the exact doubles, and no result
  // covers the costs beyond.
  bool too_fine() const { return too_fine_; }

 private:
  enum class Task : std::uint8_t { kSearch, kDual, kBranch };

  // Returns whether the result is as good as the caller wants.
  bool is_enough() const;
  // Returns whether a limit ends the search, and records the limit.
  bool is_stopped() {
    stopped_by_ = state_.budget.stopped();
    return stopped_by_.has_value();
  }
  std::size_t threads() const {
    return static_cast<std::size_t>(std::max(1, options_.threads));
  }
  bool enabled(Pass pass) const { return options_.passes.enabled(pass); }
  // Returns whether a better bound lets elimination prove the rest.
  bool is_close() const;
  bool is_small() const {
    return state_.core->unary.size() <= tuning::kSmallCoreChoices;
  }

  // Runs until the result is proven, or it is stopped or out of time or work.
  void solve();
  // Returns whether this solved the problem.
  bool solve_at_once();
  void search();
  void make_workers();
  void guide_workers();
  void round(std::uint64_t work);
  // Returns the task of the first worker in this round.
  Task first_task() const;
  void gather();
  void count_work();
  void tell_progress() const;
  // Returns false once the caller has seen enough.
  bool may_go_on();
  // Returns whether all results hold only for costs that are exact in doubles.
  bool is_blind() const;
  // Returns whether no enabled pass has anything left to do.
  bool is_idle() const;
  void offer_leanest();
  void offer_decoded();
  void offer_known();
  Solution finish();

  const SolveOptions& options_;
  SearchState state_;
  LateElimination elimination_{state_};
  FrontElimination front_{state_};
  DualAscent dual_{state_};
  Probing probing_{state_};
  Branching branching_{state_};
  std::vector<int> core_best_;  // the best, if it came from the core
  double core_best_cost_ = kInfinity;
  bool exact_ = true;  // all costs of interest are exact in doubles
  bool too_fine_ = false;
  std::vector<std::unique_ptr<SearchWorker>> workers_;
  int rounds_ = 0;
  std::optional<StoppedBy> stopped_by_;
};

}  // namespace shardprop::solver
