#include <shardprop/plan/solve_plan.h>

#include "plan/plan_network.h"

#include <shardprop/base/error.h>
#include <shardprop/solver/solve.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace shardprop {
namespace {

// The network counts memory from below. Where a solution of it exceeds the
// limit after all, what it lacks is set aside and the rest is solved again.
constexpr int kMostRounds = 8;
// Share of what is left of time and work for one round but the last.
constexpr double kShareOfRound = 0.5;

class PlanSolver {
 public:
  explicit PlanSolver(const PlanProblem& problem)
      : problem_(problem),
        options_(problem.options()),
        start_(std::chrono::steady_clock::now()) {}

  PlanSolution run() {
    // Most plans fit: then memory need not be looked at.
    const bool limited = options_.memory_limit.has_value();
    if (!solve({}, limited ? kShareOfRound : 1) || !limited || out_.assignment)
      return finish();
    NetworkOptions network{options_.memory_limit, {}};
    for (int round = 0; round < kMostRounds && !out_.assignment; ++round) {
      if (!solve(network, round + 1 < kMostRounds ? kShareOfRound : 1)) break;
      reserve(network);
    }
    return finish();
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

  // False when there is nothing more to be had: no solution, no time.
  bool solve(const NetworkOptions& options, double share) {
    const double left = options_.time_limit_seconds - seconds();
    if (left <= 0) return false;
    const PlanNetwork network(problem_, options);
    solver::SolveOptions how;
    how.time_limit_seconds = share * left;
    how.threads = options_.threads;
    how.seed = options_.seed;
    if (options_.work_limit) {
      const auto most = static_cast<std::uint64_t>(*options_.work_limit);
      if (out_.work >= most) return false;
      how.work_limit = std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(share *
                                        static_cast<double>(most - out_.work)));
    }
    const solver::Solution solution = solver::solve(network.network(), how);
    out_.work += solution.work;
    const bool bounds = options.reserved.empty();
    if (solution.status == solver::Status::kInfeasible) {
      if (bounds) take_clash(solution);
      return false;
    }
    if (bounds && solution.lower_bound) {
      out_.lower_bound = std::max(
          out_.lower_bound, static_cast<std::int64_t>(*solution.lower_bound));
    }
    if (!solution.cost) return false;
    take(network.decode(solution.assignment), *solution.cost);
    return true;
  }

  void take(PlanAssignment plan, solver::Int128 cost) {
    const PlanEvaluation judged = evaluate(problem_, plan);
    if (!judged.broken.empty()) throw InternalError(judged.broken);
    if (judged.objective > cost) {
      throw InternalError("a plan costs more than the solver says");
    }
    const bool fits =
        !options_.memory_limit || judged.peak_bytes <= *options_.memory_limit;
    last_ = std::move(plan);
    if (fits) {
      out_.assignment = last_;
      out_.evaluation = judged;
    } else if (!out_.assignment &&
               (out_.evaluation.peak_bytes == 0 ||
                judged.peak_bytes < out_.evaluation.peak_bytes)) {
      out_.evaluation = judged;
    }
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
      out_.clash.push_back(
          {step.time, static_cast<std::int64_t>(step.bytes_short)});
    }
    out_.clash_irreducible = solution.clash->irreducible;
  }

  PlanSolution finish() {
    if (out_.assignment) {
      out_.lower_bound = std::min(out_.lower_bound, out_.evaluation.objective);
      out_.status = out_.lower_bound == out_.evaluation.objective
                        ? PlanStatus::kOptimal
                        : PlanStatus::kFeasible;
    }
    return std::move(out_);
  }

  const PlanProblem& problem_;
  const PlanOptions& options_;
  std::chrono::steady_clock::time_point start_;
  PlanSolution out_;
  PlanAssignment last_;
};

}  // namespace

PlanSolution solve_plan(const PlanProblem& problem) {
  return PlanSolver(problem).run();
}

}  // namespace shardprop
