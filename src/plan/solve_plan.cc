#include <shardprop/plan/solve_plan.h>

#include "base/guard.h"
#include "base/saturating.h"
#include "plan/hidden_prices.h"
#include "plan/plan_network.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// The network counts memory from below. Where a solution of it exceeds the
// limit after all, what it lacks is set aside and the rest is solved again.
constexpr int kMostRounds = 8;
constexpr double kSecondsBetweenReports = 0.2;
// Prices of hidden time that are tried, and when they are good enough.
constexpr int kMostPrices = 16;
constexpr double kSmallGap = 1e-5;
constexpr double kPartsOfTime = 6;
// What is spent on what no prices can tell apart.
constexpr int kMostBranches = 1000;
constexpr std::uint64_t kBranchWork = 500'000'000;

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
    NetworkOptions network;
    if (!solve(network, !limited)) return;
    if (limited && !out_.assignment) {
      network.memory_limit = options_.memory_limit;
      for (int round = 1; round <= kMostRounds && !out_.assignment; ++round) {
        if (!solve(network, round == kMostRounds)) break;
        reserve(network);
      }
      network.reserved.clear();
    }
    if (!out_.assignment || is_done()) return;
    price_hidden_time(network);
    if (!is_done()) branch(network);
  }

  bool is_done() const { return out_.lower_bound >= out_.evaluation.objective; }

  bool is_close() const {
    return static_cast<double>(out_.evaluation.objective - out_.lower_bound) <=
           kSmallGap * static_cast<double>(out_.evaluation.objective);
  }

  bool exposes_something() const {
    return std::any_of(
        out_.evaluation.windows.begin(), out_.evaluation.windows.end(),
        [](const WindowLoad& load) { return load.exposed() > 0; });
  }

  // Raises the bound, and finds better plans, where more could hide in a window
  // than there is compute.
  void price_hidden_time(NetworkOptions& network) {
    HiddenPrices prices(problem_.num_windows());
    std::vector<std::int64_t> best;
    std::int64_t bound = out_.lower_bound;
    for (int i = 0; i < kMostPrices && !is_close(); ++i) {
      if (!prices.learn(tried_, tried_bound_)) break;
      network.hidden_prices = prices.prices();
      if (!solve(network, true)) break;
      if (out_.lower_bound > bound) {
        bound = out_.lower_bound;
        best = network.hidden_prices;
      }
    }
    network.hidden_prices = std::move(best);
  }

  struct Branch {
    std::map<std::uint32_t, std::vector<std::uint32_t>> left;
    std::int64_t bound = 0;
    friend bool operator>(const Branch& a, const Branch& b) {
      return a.bound > b.bound;
    }
  };

  // Where the cheapest assignments at two prices differ in a choice, it is
  // taken on one side and forbidden on the other: in the end the loads of all
  // windows are fixed, and prices of 0 and 1 are exact.
  void branch(const NetworkOptions& network) {
    if (!exposes_something() && network.hidden_prices.empty()) return;
    const std::uint64_t work = out_.work;
    std::priority_queue<Branch, std::vector<Branch>, std::greater<>> open;
    open.push({{}, out_.lower_bound});
    for (int i = 0; i < kMostBranches && !open.empty(); ++i) {
      out_.lower_bound = std::max(out_.lower_bound, open.top().bound);
      if (is_done() || out_.work - work > kBranchWork) return;
      Branch here = open.top();
      open.pop();
      NetworkOptions options = network;
      options.left = here.left;
      if (!solve(options, true)) {
        if (stopped_) return;
        continue;  // there is nothing left here
      }
      here.bound = std::max(here.bound, tried_bound_);
      const solver::Assignment first = tried_assignment_;
      options.hidden_prices = HiddenPrices::extreme(tried_.windows);
      if (here.bound < out_.evaluation.objective) {
        if (!solve(options, true)) return;
        here.bound = std::max(here.bound, tried_bound_);
      }
      if (here.bound >= out_.evaluation.objective) continue;
      const auto [mine, other] =
          std::mismatch(first.begin(), first.end(), tried_assignment_.begin());
      if (mine == first.end()) return;
      const auto at = static_cast<std::uint32_t>(mine - first.begin());
      Branch without = here;
      std::vector<std::uint32_t>& rest = without.left[at];
      if (rest.empty()) {
        rest.resize(tried_choices_[at]);
        std::iota(rest.begin(), rest.end(), 0U);
      }
      std::erase(rest, *mine);
      here.left[at] = {*mine};
      open.push(std::move(here));
      if (!rest.empty()) open.push(std::move(without));
    }
    if (open.empty()) out_.lower_bound = out_.evaluation.objective;
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
    if (out_.assignment) {
      progress.objective = out_.evaluation.objective;
    } else if (now.cost) {
      progress.objective = saturated(*now.cost);
    }
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
    const bool first = std::exchange(first_, false);
    stopped_ = left <= 0 || options_.stop.stop_requested() ||
               (!first && out_of_work());
    if (stopped_) return false;
    Result<PlanNetwork> built = PlanNetwork::create(problem_, options);
    if (!built) {
      out_.failure = std::move(built).error();
      return false;
    }
    const PlanNetwork& network = *built;
    const bool bounds = options.reserved.empty() && options.left.empty();
    // Of what is left, each of several prices gets a part: bounds hold
    // unproven.
    const bool priced = !options.hidden_prices.empty() || !options.left.empty();
    solver::SolveOptions how =
        solver_options(priced ? left / kPartsOfTime : left);
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
      if (bounds && !out_.assignment) take_clash(solution);
      return false;
    }
    stopped_ = true;  // unless there is an assignment
    if (bounds && solution.lower_bound) {
      out_.lower_bound =
          std::max(out_.lower_bound, saturated(*solution.lower_bound));
    }
    if (!solution.cost) return false;
    stopped_ = false;
    tried_assignment_ = solution.assignment;
    tried_bound_ = solution.lower_bound ? saturated(*solution.lower_bound) : 0;
    note_choices(network.network());
    tried_ = take(network.decode(solution.assignment));
    std::int64_t waited = 0;
    for (const WindowLoad& load : tried_.windows) waited += load.exposed();
    if (options.hidden_prices.empty() &&
        tried_.objective - waited > *solution.cost) {
      throw InternalError("a plan costs more than the solver says");
    }
    return true;
  }

  void note_choices(const solver::Problem& network) {
    tried_choices_.clear();
    for (std::size_t v = 0; v < network.num_variables(); ++v) {
      tried_choices_.push_back(static_cast<std::uint32_t>(
          network.num_choices(solver::VariableId(v))));
    }
  }

  // Keeps the plan if it is the best so far; returns how it was judged.
  PlanEvaluation take(PlanAssignment plan) {
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
    return judged;
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
  // Of the network that was solved last.
  PlanEvaluation tried_;
  solver::Assignment tried_assignment_;
  std::int64_t tried_bound_ = 0;
  std::vector<std::uint32_t> tried_choices_;  // by variable, how many
  bool stopped_ = false;  // it was not solved for want of time or work
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
