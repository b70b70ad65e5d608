#include "plan/network/solved_network.h"

#include "base/option_bounds.h"
#include "base/saturating.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {

solver::SolveOptions solver_options(const PlanProblem& problem,
                                    const Budget& budget) {
  solver::SolveOptions how;
  how.time_limit_seconds = std::clamp(budget.seconds_left(), 0.0, kMostSeconds);
  how.work_limit = budget.work_left();
  how.stop = budget.stop_token();
  how.threads = problem.options().threads;
  how.seed = problem.options().seed;
  for (const std::string& name : problem.options().switched_off) {
    if (const auto pass = solver::parse_pass(name)) how.passes.disable(*pass);
  }
  return how;
}

SolvedNetwork solve(PlanNetwork& network, const NetworkOptions& options,
                    const Budget& budget, const NetworkGoals& goals) {
  SolvedNetwork out;
  // The time limit includes pricing the network.
  solver::SolveOptions how = solver_options(network.problem(), budget);
  if (auto priced = network.price(options); !priced) {
    out.end = SolvedNetwork::End::kFailed;
    out.failure = std::move(priced).error();
    return out;
  }
  std::vector<solver::Assignment> known;
  for (const NetworkAssignment& assignment : goals.known) {
    known.push_back(network.choices(assignment));
  }
  how.known = known;
  how.messages = goals.messages;
  how.explains = goals.explains;
  how.enough_gap = goals.enough_gap;
  how.enough_cost = goals.enough_cost;
  how.enough_bound = goals.enough_bound;
  how.progress = goals.progress;
  if (goals.go_on) {
    how.go_on = [&](const solver::Assignment& assignment, double spent) {
      return goals.go_on(network.assignment(assignment), spent);
    };
  }
  solver::Solution solution = solver::solve(network.network(), how);
  out.work = solution.work;
  out.procedures = std::move(solution.procedures);
  out.stopped_by = solution.stopped_by;
  out.conflict = std::move(solution.conflict);
  out.failure = std::move(solution.failure);
  if (solution.status == solver::Status::kInfeasible) {
    out.end = SolvedNetwork::End::kInfeasible;
    return out;
  }
  if (solution.lower_bound) out.bound = saturated(*solution.lower_bound);
  if (!solution.cost) return out;
  out.end = SolvedNetwork::End::kSolved;
  out.assignment = network.assignment(std::move(solution.assignment));
  out.plan = network.decode(out.assignment);
  out.evaluation = evaluate(network.problem(), out.plan);
  const std::int64_t counted =
      out.evaluation.objective - out.evaluation.exposed();
  if (options.overlap_multipliers.empty() && counted > *solution.cost) {
    throw InternalError("a plan costs more than the solver says");
  }
  return out;
}

}  // namespace shardprop
