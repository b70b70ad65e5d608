#include "plan/search/network_search.h"

#include "base/saturating.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop {
namespace {

constexpr double kSecondsBetweenReports = 0.2;

std::optional<RanOut> limit_of(
    const std::optional<solver::StoppedBy>& stopped_by) {
  if (!stopped_by) return std::nullopt;
  switch (*stopped_by) {
    case solver::StoppedBy::kTime:
      return RanOut::kTime;
    case solver::StoppedBy::kWork:
      return RanOut::kWork;
    case solver::StoppedBy::kRequest:
      return RanOut::kInterrupted;
  }
  return std::nullopt;
}

}  // namespace

NetworkSearch::NetworkSearch(const PlanProblem& problem,
                             const SolveLimits& limits)
    : problem_(problem),
      options_(problem.options()),
      limits_(limits),
      start_(std::chrono::steady_clock::now()) {}

double NetworkSearch::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                       start_)
      .count();
}

solver::SolveOptions NetworkSearch::solver_options(double seconds_left) const {
  solver::SolveOptions how;
  how.time_limit_seconds = seconds_left;
  how.threads = options_.threads;
  how.seed = options_.seed;
  how.stop = options_.stop;
  if (limits_.work) {
    how.work_limit = out_of_work() ? 0 : *limits_.work - out_.work;
  }
  return how;
}

bool NetworkSearch::out_of_limits() {
  if (options_.stop.stop_requested()) {
    ended_by_ = RanOut::kInterrupted;
  } else if (out_of_work()) {
    ended_by_ = RanOut::kWork;
  } else if (seconds_left() <= 0) {
    ended_by_ = RanOut::kTime;
  } else {
    return false;
  }
  return true;
}

void NetworkSearch::begin_with(std::optional<PlanAssignment> plan,
                               std::uint64_t work) {
  out_.work += work;
  if (!plan) return;
  judge(*plan);
  if (!options_.progress || !found()) return;
  report({PlanProgress::Phase::kSearch, seconds(), out_.evaluation.objective,
          out_.lower_bound});
}

void NetworkSearch::tell(const solver::Progress& now, bool bounds) {
  PlanProgress progress{PlanProgress::Phase::kSearch, seconds(), {}, {}};
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
  next_report_ = progress.seconds + kSecondsBetweenReports;
  options_.progress(progress);
}

NetworkOutcome NetworkSearch::solve(const NetworkOptions& options,
                                    const Attempt& attempt) {
  const double left = seconds_left();
  const bool first = std::exchange(first_, false);
  // The first network is reduced even if no work is left to search in it.
  const bool is_only_reduced =
      first && left > 0 && !options_.stop.stop_requested();
  stopped_ = out_of_limits() && !is_only_reduced;
  if (stopped_) return NetworkOutcome::kStopped;
  // The time limit includes building the network.
  solver::SolveOptions how = solver_options(left * attempt.share_of_time);
  Result<PlanNetwork> built = PlanNetwork::create(problem_, options);
  if (!built) {
    out_.failure = std::move(built).error();
    return NetworkOutcome::kFailed;
  }
  const PlanNetwork& network = *built;
  if (how.work_limit && attempt.share_of_work < 1) {
    *how.work_limit = static_cast<std::uint64_t>(
        attempt.share_of_work * static_cast<double>(*how.work_limit));
  }
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
  how.explains = attempt.bounds && !found() && limits_.explains;
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
  out_.work += solution.work;
  if (first) first_work_ = solution.work;
  if (solution.failure) out_.failure = solution.failure;
  if (attempt.bounds) cut_off_by_ = limit_of(solution.stopped_by);
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
    out_.ran_out = ended_by_     ? *ended_by_
                   : cut_off_by_ ? *cut_off_by_
                                 : RanOut::kAttempts;
  }
  return std::move(out_);
}

}  // namespace shardprop
