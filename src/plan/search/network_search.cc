#include "plan/search/network_search.h"

#include "base/option_bounds.h"
#include "base/saturating.h"
#include "plan/problem/plan_budget.h"
#include "plan/tuning.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop {

NetworkSearch::NetworkSearch(const PlanProblem& problem, const Budget& budget,
                             const SearchScope& scope)
    : problem_(problem),
      options_(problem.options()),
      budget_(budget.rest()),
      scope_(scope) {}

solver::SolveOptions NetworkSearch::solver_options(const Budget& budget) const {
  solver::SolveOptions how;
  how.time_limit_seconds = std::clamp(budget.seconds_left(), 0.0, kMostSeconds);
  how.work_limit = budget.work_left();
  how.stop = budget.stop_token();
  how.threads = options_.threads;
  how.seed = options_.seed;
  return how;
}

bool NetworkSearch::out_of_limits() {
  const std::optional<StoppedBy> cause = budget_.stopped();
  if (cause) ended_by_ = cause;
  return cause.has_value();
}

void NetworkSearch::begin_with(std::optional<PlanAssignment> plan,
                               std::uint64_t work) {
  budget_.charge(work);
  if (!plan) return;
  judge(*plan);
  if (!options_.progress || !found()) return;
  report({PlanProgress::Phase::kSearch, budget_.seconds_spent(),
          out_.evaluation.objective, out_.lower_bound});
}

void NetworkSearch::tell(const solver::Progress& now, bool bounds) {
  PlanProgress progress{
      PlanProgress::Phase::kSearch, budget_.seconds_spent(), {}, {}};
  if (found()) {
    progress.objective = out_.evaluation.objective;
  } else if (now.cost) {
    progress.objective = saturated(*now.cost);
  }
  std::int64_t bound = out_.lower_bound;
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

NetworkOutcome NetworkSearch::solve(const NetworkOptions& options,
                                    const Attempt& attempt) {
  const bool first = std::exchange(first_, false);
  // The first network is reduced even if no work is left to search in it.
  const bool is_only_reduced = first && !budget_.is_cut_off();
  stopped_ = out_of_limits() && !is_only_reduced;
  if (stopped_) return NetworkOutcome::kStopped;
  // The time limit includes building the network.
  solver::SolveOptions how =
      solver_options(attempt.budget ? *attempt.budget : budget_);
  Result<PlanNetwork> built = PlanNetwork::create(problem_, options);
  if (!built) {
    out_.failure = std::move(built).error();
    return NetworkOutcome::kFailed;
  }
  const PlanNetwork& network = *built;
  solver::Messages part;
  std::vector<solver::Assignment> known;
  if (!options.memory_limit) {
    if (attempt.bounds) {
      for (const NetworkAssignment& plan : known_) {
        known.push_back(network.choices(plan));
      }
      how.known = known;
      how.messages = &messages_;
    } else {
      part = messages_;
      how.messages = &part;
    }
  }
  how.explains = attempt.bounds && !found() && scope_.explains;
  how.enough_gap = attempt.enough_gap;
  how.enough_cost = attempt.enough_cost;
  if (options_.progress) {
    how.progress = [&](const solver::Progress& now) {
      tell(now, attempt.bounds);
    };
  }
  if (attempt.gives_up_at) {
    how.go_on = [&, judged = solver::Assignment(), good = false](
                    const solver::Assignment& assignment,
                    double spent) mutable {
      const bool due = spent >= *attempt.gives_up_at;
      // The first plan that fits is worth knowing if the network counts memory.
      const bool early = options.memory_limit && !found_here_;
      if ((due || early) && assignment != judged) {
        judged = assignment;
        good = fits(take(network.decode(network.assignment(assignment))));
      }
      return good || !due;
    };
  }
  const solver::Solution solution = solver::solve(network.network(), how);
  budget_.charge(solution.work);
  if (first) first_work_ = solution.work;
  if (solution.failure) out_.failure = solution.failure;
  if (attempt.bounds) cut_off_by_ = solution.stopped_by;
  if (solution.status == solver::Status::kInfeasible) {
    if (attempt.bounds && !found()) take_conflict(solution);
    return NetworkOutcome::kInfeasible;
  }
  const std::int64_t bound =
      solution.lower_bound ? saturated(*solution.lower_bound) : 0;
  if (attempt.bounds) raise_bound(bound);
  stopped_ = !solution.cost.has_value();
  if (stopped_) return NetworkOutcome::kStopped;
  NetworkAssignment assignment = network.assignment(solution.assignment);
  PlanEvaluation judged = take(network.decode(assignment));
  tried_ = {std::move(judged), std::move(assignment), last_, bound};
  if (!options.memory_limit && attempt.bounds) {
    known_.push_back(tried_.assignment);
  }
  const std::int64_t counted =
      tried_.evaluation.objective - tried_.evaluation.exposed();
  if (options.overlap_multipliers.empty() && counted > *solution.cost) {
    throw InternalError("a plan costs more than the solver says");
  }
  return NetworkOutcome::kSolved;
}

PlanEvaluation NetworkSearch::take(PlanAssignment plan) {
  PlanEvaluation judged = judge(plan);
  last_ = std::move(plan);
  if (fits(judged)) {
    found_here_ =
        std::min(found_here_.value_or(judged.objective), judged.objective);
  }
  return judged;
}

PlanEvaluation NetworkSearch::judge(const PlanAssignment& plan) {
  PlanEvaluation judged = evaluate(problem_, plan);
  if (!judged.broken.empty()) throw InternalError(judged.broken);
  if (fits(judged)) {
    if (!found() || judged.objective < out_.evaluation.objective) {
      out_.assignment = plan;
      out_.evaluation = judged;
    }
  } else if (!found() && (out_.evaluation.peak_bytes == 0 ||
                          judged.peak_bytes < out_.evaluation.peak_bytes)) {
    out_.evaluation = judged;
  }
  return judged;
}

void NetworkSearch::take_conflict(const solver::Solution& solution) {
  out_.status = PlanStatus::kInfeasible;
  if (!solution.conflict) return;
  for (const solver::Conflict::MemoryStep& step : solution.conflict->memory) {
    out_.conflict.push_back({step.time, saturated(step.bytes_short)});
  }
  out_.conflict_irreducible = solution.conflict->irreducible;
}

void check_bound(std::int64_t lower_bound, std::int64_t objective) {
  if (lower_bound > objective) {
    throw InternalError("a lower bound of " + std::to_string(lower_bound) +
                        " ns is above the cost of a plan, " +
                        std::to_string(objective) + " ns");
  }
}

PlanSolution NetworkSearch::finish() && {
  out_.work = budget_.work_spent();
  if (found()) {
    // Costs saturate at kMostNanoseconds. Equal saturated costs prove nothing,
    // so the bound stays below that value.
    out_.lower_bound = std::min(out_.lower_bound, kMostNanoseconds - 1);
    check_bound(out_.lower_bound, out_.evaluation.objective);
    out_.status = out_.lower_bound == out_.evaluation.objective
                      ? PlanStatus::kOptimal
                      : PlanStatus::kFeasible;
  }
  if (out_.status != PlanStatus::kOptimal &&
      out_.status != PlanStatus::kInfeasible) {
    const std::optional<StoppedBy> cause = ended_by_ ? ended_by_ : cut_off_by_;
    out_.ran_out = cause ? ran_out_of(*cause) : RanOut::kAttempts;
  }
  return std::move(out_);
}

}  // namespace shardprop
