#include "plan/search/parts/free_layers_bound.h"

#include "plan/network/plan_network.h"
#include "plan/problem/equal_choices.h"
#include "plan/tuning.h"

#include <shardprop/plan/plan.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace shardprop {
namespace {

// Returns the messages of the bound of an earlier search; null if it kept none.
const NamedMessages* messages_of(const Plan* earlier) {
  if (earlier == nullptr || !earlier->has_plan() ||
      !earlier->free_lower_bound_nanoseconds ||
      earlier->warm_start.data == nullptr) {
    return nullptr;
  }
  return earlier->warm_start.data->free_layers.get();
}

// Returns the bound that is as far from the cost as that of the earlier plan, in
// parts of the cost.
std::int64_t as_near(const Plan& earlier, std::int64_t cost) {
  const auto of = static_cast<double>(*earlier.objective_nanoseconds);
  if (of <= 0) return cost;
  return static_cast<std::int64_t>(
      static_cast<double>(cost) *
      (static_cast<double>(*earlier.free_lower_bound_nanoseconds) / of));
}

}  // namespace

bool can_bound_free_layers(const PlanProblem& problem,
                           const PlanSolution& found) {
  const bool is_answered =
      found.assignment || (found.status == PlanStatus::kInfeasible &&
                           problem.options().bounds_free_layers_if_infeasible);
  return is_answered && problem.equal_choices().have_layers();
}

FreeLayersBound free_layers_bound(const PlanProblem& problem,
                                  const PlanSolution& found,
                                  const Budget& budget) {
  const PlanProblem free = problem.with_free_layers();
  PlanNetwork network(free, {});
  Budget limited = budget.rest();
  NetworkGoals goals{.bounds_only = true};
  if (found.assignment) goals.enough_bound = found.lower_bound;
  solver::Messages messages;
  const Plan* earlier = problem.options().start_from.get();
  const NamedMessages* kept = messages_of(earlier);
  if (found.assignment && kept != nullptr) {
    messages = messages_from(NetworkLabels(network), *kept);
    goals.enough_bound = std::min(
        found.lower_bound, as_near(*earlier, found.evaluation.objective));
    limited = budget.within({.work = tuning::kWarmFreeLayersBoundWork});
  }
  const bool keeps = problem.options().keeps_warm_start;
  if (keeps || !messages.told.empty()) goals.messages = &messages;
  SolvedNetwork solved = network.solve(
      {.overlap_multipliers = found.overlap_multipliers}, limited, goals);
  FreeLayersBound out;
  if (keeps) {
    WarmStart learned;
    if (found.warm_start) learned = *found.warm_start;
    learned.free_layers = std::make_shared<const NamedMessages>(
        named_messages(NetworkLabels(network), messages));
    out.learned = std::make_shared<const WarmStart>(std::move(learned));
  }
  out.work = solved.work;
  out.failure = std::move(solved.failure);
  if (solved.bound <= 0) return out;
  out.nanoseconds = solved.bound;
  // The best plan with equal layers is one of all plans.
  if (found.assignment) {
    out.nanoseconds = std::min(solved.bound, found.evaluation.objective);
  }
  return out;
}

}  // namespace shardprop
