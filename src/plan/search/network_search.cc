#include "plan/search/network_search.h"

#include "base/saturating.h"
#include "plan/tuning.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace shardprop {

NetworkSearch::NetworkSearch(const PlanProblem& problem, const Budget& budget,
                             const SearchScope& scope)
    : problem_(problem),
      options_(problem.options()),
      budget_(budget.rest()),
      scope_(scope),
      incumbent_(problem, scope.known_cost) {
  incumbent_.solution().procedures = no_runs(options_);
}

bool NetworkSearch::out_of_limits() {
  const std::optional<StoppedBy> cause = budget_.stopped();
  if (cause) ended_by_ = cause;
  return cause.has_value();
}

void NetworkSearch::begin_with(const PlanSolution& part) {
  add_runs(incumbent_.solution().procedures,
           std::span(part.procedures).subspan(std::size(kPlanProcedures)));
  begin_with(part.assignment, part.work);
  if (part.warm_start) learned_ = *part.warm_start;
}

void NetworkSearch::begin_with(const std::optional<PlanAssignment>& plan,
                               std::uint64_t work) {
  budget_.charge(work);
  if (!plan) return;
  incumbent_.begin_with(*plan);
  if (!options_.progress || !incumbent_.found()) return;
  const PlanSolution& best = incumbent_.solution();
  report({PlanProgress::Phase::kSearch, budget_.seconds_spent(),
          best.evaluation.objective, best.lower_bound});
}

void NetworkSearch::tell(const solver::Progress& now, bool bounds) {
  PlanProgress progress{
      PlanProgress::Phase::kSearch, budget_.seconds_spent(), {}, {}};
  const PlanSolution& best = incumbent_.solution();
  if (incumbent_.found()) {
    progress.objective = best.evaluation.objective;
  } else if (now.cost) {
    progress.objective = saturated(*now.cost);
  }
  std::int64_t bound = best.lower_bound;
  if (bounds && now.lower_bound) {
    bound = std::max(bound, saturated(*now.lower_bound));
  }
  progress.lower_bound = bound;
  report(progress);
}

void NetworkSearch::report(PlanProgress progress) {
  if (progress.seconds < next_report_) return;
  next_report_ = progress.seconds + tuning::kSecondsBetweenReports;
  options_.progress(progress);
}

PlanNetwork& NetworkSearch::network_for(const NetworkOptions& options) {
  if (!network_ || !network_->can_price(options)) {
    network_.reset();
    network_.emplace(problem_, options);
  }
  return *network_;
}

std::uint64_t NetworkSearch::network_entries() const {
  return network_ ? network_->num_entries() : 0;
}

std::optional<PlanNetwork> NetworkSearch::take_network(
    const NetworkOptions& options) {
  std::optional<PlanNetwork> out;
  if (network_ && network_->can_price(options))
    out.emplace(*std::move(network_));
  forget();
  return out;
}

const NetworkLabels& NetworkSearch::labels(const NetworkOptions& options) {
  if (!labels_) labels_.emplace(network_for(options));
  return *labels_;
}

class NetworkSearch::Judge {
 public:
  Judge(NetworkSearch& search, bool counts_memory, const Attempt& attempt)
      : search_(search),
        counts_memory_(counts_memory),
        gives_up_at_(attempt.gives_up_at),
        leaves_waiting_at_(attempt.leaves_waiting_at) {}

  bool operator()(const NetworkAssignment& assignment, double spent) {
    const bool is_due = gives_up_at_ && spent >= *gives_up_at_;
    // The first plan that fits is worth knowing if the network counts memory.
    const bool is_early = counts_memory_ && !search_.incumbent_.found_here();
    const bool is_new = !(assignment == judged_);
    if ((is_due || is_early || search_.has_windows()) && is_new) {
      judged_ = assignment;
      const PlanAssignment plan = search_.network_->decode(assignment);
      const PlanEvaluation figures = evaluate(search_.problem_, plan);
      search_.incumbent_.take(plan, figures);
      fits_ = search_.incumbent_.fits(figures);
      cost_ = figures.objective;
      exposed_ = figures.exposed();
    }
    const bool leaves =
        leaves_waiting_at_ && spent >= *leaves_waiting_at_ && waits_long();
    return !leaves && (fits_ || !is_due);
  }

 private:
  // Returns whether the judged plan waits for transfers at least as long as it
  // exceeds the bound by other costs, and long enough to matter.
  bool waits_long() const {
    const WideInt waits = exposed_;
    return 2 * waits >= WideInt{cost_} - search_.running_bound_ &&
           static_cast<double>(exposed_) >=
               tuning::kLeastWaitingShare * static_cast<double>(cost_);
  }

  NetworkSearch& search_;
  bool counts_memory_;
  std::optional<double> gives_up_at_;
  std::optional<double> leaves_waiting_at_;
  NetworkAssignment judged_;
  bool fits_ = false;
  std::int64_t cost_ = 0;
  std::int64_t exposed_ = 0;
};

SolvedNetwork NetworkSearch::solve(const NetworkOptions& options,
                                   const Attempt& attempt) {
  const bool first = std::exchange(first_, false);
  // The first network is reduced even if no work is left to search in it.
  const bool is_only_reduced = first && !budget_.is_cut_off();
  if (out_of_limits() && !is_only_reduced) return {};
  NetworkGoals goals;
  solver::Messages part;
  const bool is_whole = !options.memory_limit && attempt.bounds;
  if (is_whole && start_.messages) {
    messages_ = messages_from(labels(options),
                              *std::exchange(start_.messages, nullptr));
  }
  if (is_whole) {
    goals.known = known_;
    goals.messages = &messages_;
  } else if (!options.memory_limit) {
    part = messages_;
    goals.messages = &part;
  }
  goals.bounds_only = attempt.bounds_only;
  goals.explains = attempt.bounds && !incumbent_.found() && scope_.explains;
  goals.enough_gap = attempt.enough_gap > 0
                         ? attempt.enough_gap
                         : tuning::kNetworkGapShare * options_.gap;
  goals.enough_cost = attempt.enough_cost;
  if (attempt.bounds && options_.gap > 0 && incumbent_.found()) {
    goals.enough_bound = incumbent_.enough_bound();
  }
  if (attempt.bounds && scope_.cost_to_beat) {
    goals.enough_bound =
        std::min(goals.enough_bound.value_or(*scope_.cost_to_beat),
                 *scope_.cost_to_beat);
  }
  running_bound_ = incumbent_.solution().lower_bound;
  goals.progress = [&](const solver::Progress& now) {
    if (now.lower_bound) {
      running_bound_ = std::max(running_bound_, saturated(*now.lower_bound));
    }
    if (options_.progress) tell(now, attempt.bounds);
  };
  // The network does not count exposed time. Its last solution is the
  // cheapest one, but the plan of an earlier one may cost less.
  if (attempt.gives_up_at || has_windows()) {
    goals.go_on = Judge(*this, options.memory_limit.has_value(), attempt);
  }
  const Budget budget = attempt.budget ? *attempt.budget : budget_;
  SolvedNetwork solved = network_for(options).solve(options, budget, goals);
  if (solved.failure) incumbent_.solution().failure = solved.failure;
  if (solved.end == SolvedNetwork::End::kFailed) return solved;
  budget_.charge(solved.work);
  add_runs(incumbent_.solution().procedures, solved.procedures);
  if (first) first_work_ = solved.work;
  if (attempt.bounds) cut_off_by_ = solved.stopped_by;
  if (solved.is_infeasible()) {
    if (attempt.bounds && !incumbent_.found()) {
      incumbent_.take_infeasible(solved.conflict);
    }
    return solved;
  }
  if (attempt.bounds) {
    const bool is_better = solved.bound > incumbent_.solution().lower_bound;
    incumbent_.raise_bound(solved.bound);
    if (is_whole && is_better && options_.keeps_warm_start) {
      learned_.messages = std::make_shared<const NamedMessages>(
          named_messages(labels(options), messages_));
    }
  }
  if (!solved) return solved;
  incumbent_.take(solved.plan, solved.evaluation);
  if (is_whole) known_.push_back(solved.assignment);
  return solved;
}

PossiblePart NetworkSearch::possible_part(const NetworkOptions& options,
                                          std::int64_t target, Budget& budget,
                                          solver::Messages& messages) {
  PossiblePart part =
      network_for(options).possible_part(options, target, budget, messages);
  budget.charge(part.work);
  budget_.charge(part.work);
  if (const auto cause = budget.stopped()) cut_off_by_ = cause;
  if (part.failure) incumbent_.solution().failure = part.failure;
  if (part.plan) incumbent_.take(*part.plan, part.evaluation);
  return part;
}

void NetworkSearch::improve(solver::Messages& messages,
                            const NetworkOptions& options, std::int64_t target,
                            Budget& budget) {
  const PossiblePart part =
      network_for(options).possible_part(options, target, budget, messages);
  budget.charge(part.work);
  budget_.charge(part.work);
  if (part.failure) incumbent_.solution().failure = part.failure;
}

void NetworkSearch::keep(DivisionTree branches) {
  learned_.branches = std::make_shared<const DivisionTree>(std::move(branches));
  if (start_.branches) start_.branches = learned_.branches;
}

PlanSolution NetworkSearch::finish() && {
  if (options_.keeps_warm_start && (learned_.messages || learned_.branches)) {
    incumbent_.solution().warm_start =
        std::make_shared<const WarmStart>(std::move(learned_));
  }
  incumbent_.solution().work = budget_.work_spent();
  return std::move(incumbent_).finish(ended_by_ ? ended_by_ : cut_off_by_);
}

}  // namespace shardprop
