#include <shardprop/plan/solve_plan.h>

#include "base/guard.h"
#include "base/saturating.h"
#include "plan/plan_network.h"
#include "plan/ties.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

// The network counts memory from below. Where a solution of it exceeds the
// limit after all, what it lacks is set aside and the rest is solved again.
constexpr int kMostRounds = 8;
// Table entries to touch for each round of preferences: so many, and this share
// of those of the search. Good preferences are found early; proving that there
// are none better would take as long as the search.
constexpr std::uint64_t kTieWork = 1'000'000'000;
constexpr std::uint64_t kTieShare = 4;
constexpr double kSecondsBetweenReports = 0.2;

class PlanSolver {
 public:
  PlanSolver(const PlanProblem& problem, const SolveLimits& limits)
      : problem_(problem),
        options_(problem.options()),
        limits_(limits),
        start_(std::chrono::steady_clock::now()) {}

  PlanSolution run() {
    try {
      search();
      prefer();
    } catch (...) {
      out_.failure = refusal(std::current_exception());
      if (!out_.failure) throw;
    }
    return finish();
  }

 private:
  void search() {
    // Most plans fit: then memory need not be looked at.
    const bool limited = options_.memory_limit.has_value();
    if (!solve({}, !limited) || !limited || out_.assignment) return;
    NetworkOptions network{options_.memory_limit, {}};
    for (int round = 1; round <= kMostRounds && !out_.assignment; ++round) {
      if (!solve(network, round == kMostRounds)) break;
      reserve(network);
    }
    if (!out_.assignment) tighten();
  }

  // Where setting aside slot by slot what is lacking leads nowhere: all slots
  // keep some bytes free, more of them until a plan fits, and fewer again where
  // that leaves no plan at all.
  void tighten() {
    if (last_.choices.empty()) return;
    const std::int64_t limit = *options_.memory_limit;
    const std::vector<std::int64_t> bytes = bytes_by_slot(problem_, last_);
    std::int64_t too_little = 0;
    std::int64_t too_much = limit;
    std::int64_t aside = std::max<std::int64_t>(
        1, *std::max_element(bytes.begin(), bytes.end()) - limit);
    for (int i = 0; i < kMostRounds && !out_.assignment; ++i) {
      if (aside <= too_little || aside >= too_much) return;
      NetworkOptions network;
      network.memory_limit = limit - aside;
      (solve(network, false) ? too_little : too_much) = aside;
      aside =
          too_much < limit ? std::midpoint(too_little, too_much) : 2 * aside;
    }
  }

  // Among plans of this cost, one that is easier to live with.
  void prefer() {
    const double left = limits_.seconds - seconds();
    if (!limits_.break_ties || !out_.assignment || left <= 0 || out_of_work() ||
        options_.stop.stop_requested()) {
      return;
    }
    solver::SolveOptions how = solver_options(left);
    const std::uint64_t most = kTieWork + out_.work / kTieShare;
    how.work_limit = std::min(how.work_limit.value_or(most), most);
    how.progress = nullptr;
    break_ties(problem_, how, out_);
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

  solver::SolveOptions solver_options(double seconds_left) const {
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

  bool out_of_work() const {
    return limits_.work && out_.work >= *limits_.work;
  }

  // `bounds`: the network's bound is one of the whole problem, too.
  void tell(const solver::Progress& now, bool bounds) {
    if (seconds() < next_report_) return;
    next_report_ = seconds() + kSecondsBetweenReports;
    PlanProgress progress{PlanProgress::Phase::kSearch, seconds(), {}, {}};
    if (now.cost) progress.objective = saturated(*now.cost);
    std::int64_t bound = out_.lower_bound;
    if (bounds && now.lower_bound) {
      bound = std::max(bound, saturated(*now.lower_bound));
    }
    progress.lower_bound = bound;
    options_.progress(progress);
  }

  // With all the time and work that is left, or, unless it is the last try,
  // half of it where what was found by then does not fit. False when there is
  // nothing more to be had: no solution, no time.
  bool solve(const NetworkOptions& options, bool last_try) {
    const double left = limits_.seconds - seconds();
    if (left <= 0 || options_.stop.stop_requested()) return false;
    const bool first = std::exchange(first_, false);
    if (!first && out_of_work()) return false;
    Result<PlanNetwork> built = PlanNetwork::create(problem_, options);
    if (!built) {
      out_.failure = std::move(built).error();
      return false;
    }
    const PlanNetwork& network = *built;
    const bool bounds = options.reserved.empty() &&
                        (!options.memory_limit ||
                         options.memory_limit == options_.memory_limit);
    solver::SolveOptions how = solver_options(left);
    if (options_.progress) {
      how.progress = [&](const solver::Progress& now) { tell(now, bounds); };
    }
    if (!last_try) {
      how.go_on = [&](const solver::Assignment& assignment) {
        take(network.decode(assignment));
        return out_.assignment.has_value();
      };
    }
    const solver::Solution solution = solver::solve(network.network(), how);
    out_.work += solution.work;
    if (solution.failure) out_.failure = solution.failure;
    if (solution.status == solver::Status::kInfeasible) {
      if (bounds) take_clash(solution);
      return false;
    }
    if (bounds && solution.lower_bound) {
      out_.lower_bound =
          std::max(out_.lower_bound, saturated(*solution.lower_bound));
    }
    if (!solution.cost) return false;
    if (take(network.decode(solution.assignment)) > *solution.cost) {
      throw InternalError("a plan costs more than the solver says");
    }
    return true;
  }

  // Keeps the plan if it is the best so far; returns its cost.
  std::int64_t take(PlanAssignment plan) {
    const PlanEvaluation judged = evaluate(problem_, plan);
    if (!judged.broken.empty()) throw InternalError(judged.broken);
    const bool fits =
        !options_.memory_limit || judged.peak_bytes <= *options_.memory_limit;
    last_ = std::move(plan);
    if (fits) {
      if (!out_.assignment || judged.objective < out_.evaluation.objective) {
        out_.assignment = last_;
        out_.evaluation = judged;
      }
    } else if (!out_.assignment &&
               (out_.evaluation.peak_bytes == 0 ||
                judged.peak_bytes < out_.evaluation.peak_bytes)) {
      out_.evaluation = judged;
    }
    return judged.objective;
  }

  void reserve(NetworkOptions& network) const {
    const std::vector<std::int64_t> bytes = bytes_by_slot(problem_, last_);
    network.reserved.resize(bytes.size(), 0);
    for (std::size_t t = 0; t < bytes.size(); ++t) {
      network.reserved[t] +=
          std::max<std::int64_t>(0, bytes[t] - *options_.memory_limit);
    }
  }

  void take_clash(const solver::Solution& solution) {
    out_.status = PlanStatus::kInfeasible;
    if (!solution.clash) return;
    for (const solver::Clash::MemoryStep& step : solution.clash->memory) {
      out_.clash.push_back({step.time, saturated(step.bytes_short)});
    }
    out_.clash_irreducible = solution.clash->irreducible;
  }

  PlanSolution finish() {
    if (out_.assignment) {
      // Times that are cut off where they end say nothing of each other.
      out_.lower_bound = std::min(
          {out_.lower_bound, out_.evaluation.objective, kMostNanoseconds - 1});
      out_.status = out_.lower_bound == out_.evaluation.objective
                        ? PlanStatus::kOptimal
                        : PlanStatus::kFeasible;
    }
    return std::move(out_);
  }

  const PlanProblem& problem_;
  const PlanOptions& options_;
  SolveLimits limits_;
  std::chrono::steady_clock::time_point start_;
  bool first_ = true;  // nothing has been tried yet
  double next_report_ = 0;
  PlanSolution out_;
  PlanAssignment last_;
};

}  // namespace

PlanSolution solve_plan(const PlanProblem& problem) {
  return solve_plan(problem, {problem.options().time_limit_seconds,
                              problem.options().work_limit});
}

PlanSolution solve_plan(const PlanProblem& problem, const SolveLimits& limits) {
  return PlanSolver(problem, limits).run();
}

}  // namespace shardprop
