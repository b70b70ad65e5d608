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

class PlanSolver {
 public:
  PlanSolver(const PlanProblem& problem, double time_limit_seconds)
      : problem_(problem),
        options_(problem.options()),
        time_limit_seconds_(time_limit_seconds),
        start_(std::chrono::steady_clock::now()) {}

  PlanSolution run() {
    // Most plans fit: then memory need not be looked at.
    const bool limited = options_.memory_limit.has_value();
    if (!solve({}, !limited) || !limited || out_.assignment) return finish();
    NetworkOptions network{options_.memory_limit, {}};
    for (int round = 1; round <= kMostRounds && !out_.assignment; ++round) {
      if (!solve(network, round == kMostRounds)) break;
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

  // With all the time and work that is left, or, unless it is the last try,
  // half of it where what was found by then does not fit. False when there is
  // nothing more to be had: no solution, no time.
  bool solve(const NetworkOptions& options, bool last_try) {
    const double left = time_limit_seconds_ - seconds();
    if (left <= 0) return false;
    const PlanNetwork network(problem_, options);
    solver::SolveOptions how;
    how.time_limit_seconds = left;
    how.threads = options_.threads;
    how.seed = options_.seed;
    if (options_.work_limit) {
      const auto most = static_cast<std::uint64_t>(*options_.work_limit);
      if (out_.work >= most) return false;
      how.work_limit = most - out_.work;
    }
    if (!last_try) {
      how.go_on = [&](const solver::Assignment& assignment) {
        take(network.decode(assignment));
        return out_.assignment.has_value();
      };
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
  double time_limit_seconds_;
  std::chrono::steady_clock::time_point start_;
  PlanSolution out_;
  PlanAssignment last_;
};

}  // namespace

PlanSolution solve_plan(const PlanProblem& problem) {
  return solve_plan(problem, problem.options().time_limit_seconds);
}

PlanSolution solve_plan(const PlanProblem& problem, double time_limit_seconds) {
  return PlanSolver(problem, time_limit_seconds).run();
}

}  // namespace shardprop
