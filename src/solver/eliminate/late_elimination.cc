#include "solver/eliminate/late_elimination.h"

#include "solver/eliminate/bucket_elimination.h"
#include "solver/presolve/reduce.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace shardprop::solver {
namespace {

// Elimination stores small costs in 32 bits.
double bytes_of_entry(double ceiling) {
  return ceiling <= kMostNarrowCost ? 4 : 8;
}

}  // namespace

bool eliminate_rest(SearchState& state, const PrunedRoot& root,
                    double most_touched, Int128 target) {
  if (!state.options.passes.enabled(Pass::kElimination)) return false;
  for (const NetVariable& v : root.network.variables) {
    if (!v.segments.empty()) return false;
  }
  Network rest = root.network;
  reduce(rest, state.options.passes, state.passes, state.budget);
  const Int128 below = state.best.cost_in_units();
  Int128 least = Incumbent::kNoCost;
  if (!rest.infeasible && rest.offset < below) {
    const auto room = static_cast<double>(below - rest.offset);
    const auto order = order_elimination(
        rest,
        {most_touched, tuning::kMostLateTableBytes / bytes_of_entry(room)},
        state.budget);
    if (!order) return false;
    const auto solved = eliminate_in_order(
        rest, *order, room < kMostExact ? room : kInfinity,
        state.options.threads, state.budget, state.spent_elsewhere);
    if (!solved.has_value()) return false;
    if (std::isfinite(solved->cost)) {
      least = rest.offset + static_cast<Int128>(solved->cost);
    }
    if (least < below) state.offer(rest.expand(solved->choices), root.variable);
  }
  state.best.close(std::min(least, target));
  return true;
}

void LateElimination::estimate() {
  is_estimated_ = true;
  const auto order = order_elimination(
      state_.network,
      {tuning::kMostLateEntries,
       tuning::kMostLateTableBytes / 4 / tuning::kExpectedPrunedShare},
      state_.budget);
  if (order) touches_ = order->touched;
}

// Waits until the search has spent as much work, because most problems need
// less.
bool LateElimination::is_due() {
  if (!state_.options.passes.enabled(Pass::kLateElimination)) return false;
  const auto worked = static_cast<double>(state_.budget.work_spent());
  if (!state_.best.known() || worked < tuning::kWorkBeforeLateElimination)
    return false;
  if (may_run_ && !is_estimated_) estimate();
  if (touches_ > tuning::kMostLateEntries) return false;
  const auto limit = state_.budget.work_limit();
  const bool affordable =
      !limit || touches_ + worked <= static_cast<double>(*limit);
  return affordable && touches_ <= tuning::kLateEliminationFactor * worked;
}

void LateElimination::run() {
  const PrunedRoot root(state_, state_.core_target());
  const Int128 below = state_.best.cost_in_units();
  if (root.network.infeasible) {
    state_.best.close(below);
  } else if (!eliminate_rest(state_, root, touches_, below)) {
    // The pruned network may have a worse order. A later attempt may spend more
    // work.
    touches_ *= 2;
  }
}

}  // namespace shardprop::solver
