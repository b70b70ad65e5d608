#include "solver/pruned_root.h"

#include <cmath>

#include "base/index.h"

namespace shardprop::solver {

PrunedRoot::PrunedRoot(SearchState& state, double target)
    : network(state.network.extract(variable)) {
  if (!state.dual_has_bound()) return;
  DualBound& dual = *state.dual;
  const Core& core = *state.dual_core;
  dual.restore_best();
  const std::vector<double> extra = dual.choice_bounds();
  for (std::size_t v = 0; v < variable.size() && !network.infeasible; ++v) {
    std::vector<int> kept;
    for (int c = 0; c < core.choices(static_cast<int>(v)); ++c) {
      const double bound =
          dual.best_bound() + extra[index(core.at[v]) + index(c)];
      if (std::ceil(bound) < target) kept.push_back(c);
    }
    network.keep_choices(static_cast<int>(v), kept);
  }
}

std::size_t PrunedRoot::num_choices() const {
  std::size_t choices = 0;
  for (const NetVariable& v : network.variables) choices += v.costs.size();
  return choices;
}

}  // namespace shardprop::solver
