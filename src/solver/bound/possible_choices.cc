#include <shardprop/solver/possible_choices.h>

#include "base/index.h"
#include "solver/bound/dual_ascent.h"
#include "solver/bound/search_state.h"
#include "solver/presolve/reduce.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

namespace shardprop::solver {
namespace {

// Other passes remove or merge variables at these costs only, and messages
// between variables would be lost.
PassSet message_passes() {
  PassSet passes;
  for (std::size_t p = 0; p < kNumPasses; ++p) {
    passes.disable(static_cast<Pass>(p));
  }
  passes.enable(Pass::kArcConsistency);
  passes.enable(Pass::kDualBound);
  passes.enable(Pass::kExtrapolation);
  return passes;
}

// Sweeps until the bound is at least `top`, or the last sweeps closed little of
// the rest. Messages that are `warm` have a bound without any sweep.
void raise_bound(DualBound& dual, bool warm, double top, const Budget& budget) {
  const auto work_left = budget.work_left();
  if (warm) {
    dual.evaluate();
  } else {
    dual.advance(top);
  }
  double judged = dual.best_bound();
  for (int i = 1;
       std::ceil(dual.best_bound()) < top && !dual.stalled() &&
       !budget.is_cut_off() && (!work_left || dual.work() < *work_left);
       ++i) {
    dual.advance(top);
    if (i % tuning::kSweepsBetweenGainChecks != 0) continue;
    if (dual.best_bound() <
        judged + tuning::kLeastNodeGainShare * (top - judged)) {
      break;
    }
    judged = dual.best_bound();
  }
}

}  // namespace

PossibleChoices possible_choices(const Problem& problem, Int128 target,
                                 const SolveOptions& options) {
  SolveOptions how = options;
  how.passes = message_passes();
  SearchState state(problem, how);
  reduce(state.network, how.passes, state.passes, state.budget);
  PossibleChoices out;
  out.lower_bound = target;
  if (state.network.infeasible) return out;
  // Costs are whole units, so the target is rounded up to one.
  const Int128 unit = state.network.unit;
  const Int128 room = (target + unit - 1) / unit - state.network.offset;
  if (room <= 0) return out;
  const auto top = static_cast<double>(room);
  state.dual_core = std::make_unique<Core>(state.network, top);
  state.dual = std::make_unique<DualBound>(*state.dual_core);
  DualBound& dual = *state.dual;
  DualAscent ascent(state);
  const bool warm = how.messages != nullptr && !how.messages->told.empty();
  if (warm) ascent.begin_with(*how.messages);
  raise_bound(dual, warm, top, state.budget);
  if (how.messages != nullptr) ascent.leave(*how.messages);
  out.work = dual.work();
  const std::vector<std::vector<int>> below = dual.choices_below(top);
  if (std::any_of(below.begin(), below.end(),
                  [](const auto& kept) { return kept.empty(); })) {
    return out;
  }
  out.lower_bound =
      std::min(target, (state.network.offset +
                        static_cast<Int128>(std::ceil(dual.best_bound()))) *
                           unit);
  const auto left = state.network.choices_left();
  const std::vector<int> decoded = dual.decode();
  out.choices.resize(problem.num_variables());
  out.decoded.resize(problem.num_variables(), 0);
  for (std::size_t v = 0; v < below.size(); ++v) {
    const auto own = index(state.dual_core->network_variable[v]);
    const auto given = [&](int choice) {
      return static_cast<std::uint32_t>(left[own][index(choice)]);
    };
    std::transform(below[v].begin(), below[v].end(),
                   std::back_inserter(out.choices[own]), given);
    out.decoded[own] = given(decoded[v]);
  }
  return out;
}

}  // namespace shardprop::solver
