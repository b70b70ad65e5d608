#include "solver/bound/pruned_root.h"

namespace shardprop::solver {

PrunedRoot::PrunedRoot(SearchState& state, double target)
    : network(state.network.extract(variable)) {
  if (!state.dual_has_bound()) return;
  const auto kept = state.dual->choices_below(target);
  for (std::size_t v = 0; v < variable.size() && !network.infeasible; ++v) {
    network.keep_choices(static_cast<int>(v), kept[v]);
  }
}

std::size_t PrunedRoot::num_choices() const {
  std::size_t choices = 0;
  for (const NetVariable& v : network.variables) choices += v.costs.size();
  return choices;
}

}  // namespace shardprop::solver
