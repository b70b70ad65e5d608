// NetworkSearch solves networks of one plan problem, one after another within
// its budget. It prices one network again instead of building the next one,
// starts each solve from the results of earlier ones, and gives every plan and
// every bound to its incumbent.
#pragma once

#include "base/budget.h"
#include "base/index.h"
#include "plan/evaluate/plan_solution.h"
#include "plan/network/plan_network.h"
#include "plan/network/warm_start.h"
#include "plan/search/plan_incumbent.h"
#include "plan/search/procedures.h"

#include <shardprop/solver/solve.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {

// Attempt states how a network is solved.
struct Attempt {
  // Whether the network's lower bound is also valid for the plan problem. It is
  // false for a network with restricted choices.
  bool bounds = true;
  // If true, the attempt ends without a solution: only the bound is raised.
  bool bounds_only = false;
  // Share of the attempt's budget after which it is abandoned if its best plan
  // does not fit the memory limit. Empty: never.
  std::optional<double> gives_up_at;
  // Share of the attempt's budget after which it ends if its best plan waits for
  // overlappable transfers at least as long as it exceeds the bound by other
  // costs, and for kLeastWaitingShare of its cost. Empty: never.
  std::optional<double> leaves_waiting_at;
  // A share of the search's budget; the rest of it if null.
  std::optional<Budget> budget;
  double enough_gap = 0;  // relative, see solver::SolveOptions
  std::optional<std::int64_t> enough_cost;
};

class NetworkSearch {
 public:
  // `problem` must outlive the search.
  // The search has the rest of the budget.
  NetworkSearch(const PlanProblem& problem, const Budget& budget,
                const SearchScope& scope = {});

  SolvedNetwork solve(const NetworkOptions& options,
                      const Attempt& attempt = {});
  // Finds the part of a network with restricted choices that may cost less than
  // `target` (PlanNetwork::possible_part()). Its plan is a candidate for the best
  // one. Its bound is valid for the restricted network only. The work is charged to
  // `budget`, a share of budget(), too. If that share ends, finish() reports so.
  PossiblePart possible_part(const NetworkOptions& options, std::int64_t target,
                             Budget& budget, solver::Messages& messages);
  // Sweeps the messages of the same network, but looks for no plan.
  void improve(solver::Messages& messages, const NetworkOptions& options,
               std::int64_t target, Budget& budget);
  // Returns the network of these options, which the next call may replace.
  const PlanNetwork& network(const NetworkOptions& options) {
    return network_for(options);
  }
  // Runs a procedure unless it is switched off. Records its time, its work and
  // its gains in the incumbent's solution.
  template <class Work>
  void run(PlanProcedure procedure, Work&& work) {
    if (!is_on(procedure, options_)) return;
    const PlanIncumbent::Gains before = incumbent_.gains();
    const std::uint64_t spent = budget_.work_spent();
    std::vector<Procedure>& records = incumbent_.solution().procedures;
    timed_run(records, procedure, std::forward<Work>(work));
    Procedure& record = records[index(procedure)];
    record.work += budget_.work_spent() - spent;
    incumbent_.credit(record, before);
  }
  // Starts with the plan that a search of a part of the problem found, if any.
  // Charges the work of that search, adds the runs of its solver, and keeps its warm
  // start.
  void begin_with(const PlanSolution& part);
  // The same for a plan of another origin and the work spent on it.
  void begin_with(const std::optional<PlanAssignment>& plan,
                  std::uint64_t work);

  const PlanProblem& problem() const { return problem_; }
  PlanIncumbent& incumbent() { return incumbent_; }
  const PlanIncumbent& incumbent() const { return incumbent_; }

  // The budget of this search; its work is in table entries.
  const Budget& budget() const { return budget_; }
  // Leaves the search this share of the rest of its budget.
  void narrow(double share) { budget_ = budget_.narrowed(share); }
  // Goes on with the limits of `before`, a budget that narrow() made smaller.
  void widen_to(Budget before) {
    before.charge(budget_.work_spent() - before.work_spent());
    budget_ = std::move(before);
    if (ended_by_) ended_by_ = budget_.stopped();
  }
  // Returns whether a limit ends the search. finish() then reports this limit.
  bool out_of_limits();
  // Returns the number of entries of the tables of the last network.
  std::uint64_t network_entries() const;
  // The work of the first network, in table entries.
  std::uint64_t first_work() const { return first_work_; }

  // Starts the next solve and the next search for branches from what an earlier
  // search learned. Null: from nothing.
  void start_from(const std::shared_ptr<const WarmStart>& warm_start) {
    if (!warm_start) return;
    start_ = *warm_start;
    learned_ = *warm_start;
  }
  // The branches to start from; null if there are none.
  const DivisionTree* branches() const { return start_.branches.get(); }
  void forget_branches() {
    start_.branches.reset();
    learned_.branches.reset();
  }
  // Keeps them for the next search, and as those to start from if there are any.
  void keep(DivisionTree branches);
  // The labels of the networks without memory.
  const NetworkLabels& labels(const NetworkOptions& options);
  // Frees the network that was solved last.
  void free_network() { network_.reset(); }
  // Drops the warm start of the next solve(): known plans, messages and the
  // network.
  void forget() {
    known_ = {};
    messages_ = {};
    free_network();
  }
  // Does the same, and returns the network if it can have these options; null if
  // there is none.
  std::optional<PlanNetwork> take_network(const NetworkOptions& options);
  // Returns the best plan, or the reason why there is none.
  PlanSolution finish() &&;

 private:
  // Returns whether a plan may wait for transfers that the network hides.
  bool has_windows() const { return problem_.num_windows() > 0; }
  PlanNetwork& network_for(const NetworkOptions& options);
  // Judges the plans of a running solve, and ends it if it gives up.
  class Judge;
  void tell(const solver::Progress& now, bool bounds);
  void report(PlanProgress progress);

  const PlanProblem& problem_;
  const PlanOptions& options_;
  Budget budget_;
  SearchScope scope_;
  PlanIncumbent incumbent_;
  bool first_ = true;  // no network has been solved yet
  std::uint64_t first_work_ = 0;
  double next_report_ = 0;
  // No plan of the running solve costs less, exposed transfers included.
  std::int64_t running_bound_ = 0;
  // The limit that ended the search between two networks, and the one that
  // ended the last solve of a network whose bound is valid for the problem.
  std::optional<StoppedBy> ended_by_;
  std::optional<StoppedBy> cut_off_by_;
  // Only one network is kept, since two take much memory.
  std::optional<PlanNetwork> network_;
  // The warm start of networks without memory and restriction, which differ in
  // prices only: the plans found, and the messages from which the next bound
  // begins.
  std::vector<NetworkAssignment> known_;
  solver::Messages messages_;
  WarmStart start_;    // of an earlier search, without messages that were used
  WarmStart learned_;  // by this search
  std::optional<NetworkLabels> labels_;  // of these networks, made when needed
};

}  // namespace shardprop
