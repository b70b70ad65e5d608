// NetworkSearch: solves networks of one plan problem, one behind another within
// its limits, and keeps the best plan that was met and the best bound.
#pragma once

#include "plan/plan_network.h"
#include "plan/plan_solution.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {

// How a network is solved.
struct Attempt {
  // Its bound is one of the whole problem, too.
  bool bounds = true;
  // Given up at this share of its time or work where the best by then does not
  // fit.
  std::optional<double> gives_up_at;
  double share_of_time = 1;  // of what is left
  double share_of_work = 1;  // as well, where work is limited
  double enough_gap = 0;     // as SolveOptions'
  std::optional<std::int64_t> enough_cost;
};

// NetworkOutcome is how the solve of one network ended. It converts to whether
// there is a solution.
class NetworkOutcome {
 public:
  enum Kind : std::uint8_t {
    kSolved,
    kInfeasible,  // proven: the network has no solution
    kStopped,     // no solution was found within time and work
    kFailed,      // the network could not be built: PlanSolution::failure
  };
  NetworkOutcome(Kind kind) : kind_(kind) {}  // NOLINT: each kind is one

  explicit operator bool() const { return kind_ == kSolved; }
  bool is_infeasible() const { return kind_ == kInfeasible; }

 private:
  Kind kind_;
};

// The last network that was solved.
struct Tried {
  PlanEvaluation evaluation;
  NetworkAssignment assignment;
  PlanAssignment plan;  // that the assignment means
  std::int64_t bound = 0;  // of the network
};

// Throws InternalError if no plan could cost as little as one does.
void check_bound(std::int64_t lower_bound, std::int64_t objective);

class NetworkSearch {
 public:
  // `problem` must outlive the search.
  NetworkSearch(const PlanProblem& problem, const SolveLimits& limits);

  // Solves a network. tried() is its solution if there is one.
  NetworkOutcome solve(const NetworkOptions& options,
                       const Attempt& attempt = {});
  // Keeps an assignment of the problem if it fits and is the best so far.
  void offer(PlanAssignment plan) { take(std::move(plan)); }
  // The same for an assignment that a search of a part of the problem found,
  // with the work of that search.
  void begin_with(std::optional<PlanAssignment> plan, std::uint64_t work);
  const Tried& tried() const { return tried_; }
  bool stopped() const { return stopped_; }

  const PlanProblem& problem() const { return problem_; }
  // Of the last solution, whether it fits or not.
  const PlanAssignment& last() const { return last_; }
  // What is known: the best plan within the memory limit, the bound.
  const PlanSolution& best() const { return out_; }
  bool found() const { return out_.assignment.has_value(); }
  // What the best plan costs that networks of the whole problem led to; null
  // while there is none. The best plan may be another one, of begin_with().
  std::optional<std::int64_t> found_here() const { return found_here_; }
  bool fits(const PlanEvaluation& plan) const {
    return !options_.memory_limit || plan.peak_bytes <= *options_.memory_limit;
  }
  // Proven.
  bool is_done() const {
    return found() && out_.lower_bound >= out_.evaluation.objective;
  }
  void raise_bound(std::int64_t bound) {
    out_.lower_bound = std::max(out_.lower_bound, bound);
  }

  double seconds() const;
  // For `seconds_left`, with what is left of the work.
  solver::SolveOptions solver_options(double seconds_left) const;
  bool out_of_work() const {
    return limits_.work && out_.work >= *limits_.work;
  }
  // Whether a limit ends the search, which finish() reports then.
  bool out_of_limits();
  // Of the first network.
  std::uint64_t first_work() const { return first_work_; }
  // Table entries; 0 if work is not limited.
  std::uint64_t work_left() const {
    return limits_.work ? *limits_.work - std::min(*limits_.work, out_.work)
                        : 0;
  }
  double seconds_left() const { return limits_.seconds - seconds(); }

  // Lets go of what the next solve() would begin with.
  void forget() {
    known_ = {};
    messages_ = {};
  }
  // The best plan, or why there is none.
  PlanSolution finish() &&;
  PlanSolution& out() { return out_; }

 private:
  PlanEvaluation take(PlanAssignment plan);
  // Judges a plan, and keeps it if it is the best so far.
  PlanEvaluation judge(const PlanAssignment& plan);
  void take_clash(const solver::Solution& solution);
  void tell(const solver::Progress& now, bool bounds);
  void report(PlanProgress progress);

  const PlanProblem& problem_;
  const PlanOptions& options_;
  SolveLimits limits_;
  std::chrono::steady_clock::time_point start_;
  bool first_ = true;  // nothing has been tried yet
  std::uint64_t first_work_ = 0;
  bool stopped_ = false;
  double next_report_ = 0;
  PlanSolution out_;
  std::optional<std::int64_t> found_here_;
  // The limit that ended the search; else the limit that cut off the last
  // network whose bound is one of the whole problem.
  std::optional<RanOut> ended_by_;
  std::optional<RanOut> cut_off_by_;
  PlanAssignment last_;
  Tried tried_;
  // Of whole networks without memory, which differ in costs only: what was
  // found, and where the next bound begins.
  std::vector<NetworkAssignment> known_;
  solver::Messages messages_;
};

}  // namespace shardprop
