#include "solver/search/probing.h"

#include "solver/bound/pruned_root.h"
#include "solver/eliminate/late_elimination.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace shardprop::solver {

bool Probing::is_due() const {
  return state_.options.passes.enabled(Pass::kElimination) &&
         state_.options.passes.enabled(Pass::kProbing) &&
         state_.dual_has_bound() && state_.best.known() &&
         state_.dual_gap() <= tuning::kProbeAtGapShare * seen_gap_;
}

void Probing::run() {
  DualBound& dual = *state_.dual;
  const double best = state_.core_target();
  seen_gap_ = state_.dual_gap();
  dual.restore_best();
  std::vector<double> extra = dual.choice_bounds();
  if (wanted_ == 0) {
    wanted_ =
        std::max(tuning::kFirstProbedShare * static_cast<double>(extra.size()),
                 tuning::kFewestProbedChoices * state_.dual_core->size());
  }
  // The target is the least bound of the choices that the probe leaves out.
  double target = best;
  if (wanted_ < static_cast<double>(extra.size())) {
    const auto at = extra.begin() + static_cast<std::ptrdiff_t>(wanted_);
    std::nth_element(extra.begin(), at, extra.end());
    target = std::min(best, std::ceil(dual.best_bound() + *at));
  }
  if (target == best || seen_gap_ <= next_gap_) {
    probe(target);
    next_gap_ =
        seen_gap_ * (state_.core_target() < best ? tuning::kProbeAfterGain
                                                 : tuning::kProbeAfterNoGain);
  }
}

// Returns the work done so far, limited to the remaining work.
double Probing::most_touched() const {
  const std::uint64_t done = state_.budget.work_spent();
  return static_cast<double>(
      std::min(done, state_.budget.work_left().value_or(done)));
}

void Probing::probe(double target) {
  const Int128 below = state_.network.offset + static_cast<Int128>(target);
  const PrunedRoot root(state_, target);
  bool settled = true;
  if (root.network.infeasible) {
    state_.best.raise_bound(below);
  } else {
    settled = eliminate_rest(state_, root, most_touched(), below);
  }
  wanted_ *= settled ? tuning::kMoreProbed : tuning::kLessProbed;
}

}  // namespace shardprop::solver
