// NetworkSearch solves networks of one plan problem, one after another within
// its budget. It keeps the best plan and the best bound.
#pragma once

#include "base/budget.h"
#include "plan/evaluate/plan_solution.h"
#include "plan/network/plan_network.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {

// Attempt states how a network is solved.
struct Attempt {
  // Whether the network's lower bound is also valid for the plan problem. It is
  // false for a network with restricted choices.
  bool bounds = true;
  // Share of the attempt's budget after which it is abandoned if its best plan
  // does not fit the memory limit. Empty: never.
  std::optional<double> gives_up_at;
  // A share of the search's budget; the rest of it if null.
  std::optional<Budget> budget;
  double enough_gap = 0;  // relative, see SolveOptions
  std::optional<std::int64_t> enough_cost;
};

// NetworkOutcome is the end of the solve of one network. It converts to whether
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

// Tried is the solution of the last network that had one.
struct Tried {
  PlanEvaluation evaluation;
  NetworkAssignment assignment;
  PlanAssignment plan;     // the plan of the assignment
  std::int64_t bound = 0;  // of the network
};

// Throws InternalError if the lower bound is above the cost of a plan.
void check_bound(std::int64_t lower_bound, std::int64_t objective);

class NetworkSearch {
 public:
  // `problem` must outlive the search.
  // The search has the rest of the budget.
  NetworkSearch(const PlanProblem& problem, const Budget& budget,
                const SearchScope& scope = {});

  // Solves a network. tried() is its solution if there is one.
  NetworkOutcome solve(const NetworkOptions& options,
                       const Attempt& attempt = {});
  // Keeps an assignment of the problem if it fits and is the best so far.
  void offer(PlanAssignment plan) { take(std::move(plan)); }
  // Like offer(), for an assignment that a search of a part of the problem
  // found, with the work of that search. It does not count as found_here().
  void begin_with(std::optional<PlanAssignment> plan, std::uint64_t work);
  const Tried& tried() const { return tried_; }
  bool stopped() const { return stopped_; }

  const PlanProblem& problem() const { return problem_; }
  // The plan of the last solution, which may exceed the memory limit.
  const PlanAssignment& last() const { return last_; }
  // The best plan within the memory limit and the best bound so far.
  const PlanSolution& best() const { return out_; }
  bool found() const { return out_.assignment.has_value(); }
  // The cost of the best plan from networks of the whole problem; null if there
  // is none. The plan of best() may be another one, from begin_with().
  std::optional<std::int64_t> found_here() const { return found_here_; }
  bool fits(const PlanEvaluation& plan) const {
    return !options_.memory_limit || plan.peak_bytes <= *options_.memory_limit;
  }
  // Whether the best plan is proven optimal.
  bool is_done() const {
    return found() && out_.lower_bound >= out_.evaluation.objective;
  }
  void raise_bound(std::int64_t bound) {
    out_.lower_bound = std::max(out_.lower_bound, bound);
  }

  // The budget of this search; its work is in table entries.
  const Budget& budget() const { return budget_; }
  // Returns the problem's options with the rest of a budget.
  solver::SolveOptions solver_options(const Budget& budget) const;
  // Returns whether a limit ends the search. finish() then reports this limit.
  bool out_of_limits();
  // The work of the first network, in table entries.
  std::uint64_t first_work() const { return first_work_; }

  // Drops the warm start of the next solve(): known plans and messages.
  void forget() {
    known_ = {};
    messages_ = {};
  }
  // Returns the best plan, or the reason why there is none.
  PlanSolution finish() &&;
  PlanSolution& out() { return out_; }

 private:
  PlanEvaluation take(PlanAssignment plan);
  // Evaluates a plan, and keeps it if it is the best so far.
  PlanEvaluation judge(const PlanAssignment& plan);
  void take_conflict(const solver::Solution& solution);
  void tell(const solver::Progress& now, bool bounds);
  void report(PlanProgress progress);

  const PlanProblem& problem_;
  const PlanOptions& options_;
  Budget budget_;
  SearchScope scope_;
  bool first_ = true;  // nothing has been tried yet
  std::uint64_t first_work_ = 0;
  bool stopped_ = false;
  double next_report_ = 0;
  PlanSolution out_;
  std::optional<std::int64_t> found_here_;
  // The limit that ended the search between two networks, and the one that
  // ended the last solve of a network whose bound is valid for the problem.
  std::optional<StoppedBy> ended_by_;
  std::optional<StoppedBy> cut_off_by_;
  PlanAssignment last_;
  Tried tried_;
  // The warm start of whole networks without memory, which differ in costs
  // only: the plans found, and the messages from which the next bound begins.
  std::vector<NetworkAssignment> known_;
  solver::Messages messages_;
};

}  // namespace shardprop
