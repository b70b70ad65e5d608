#include "solver/search/branching.h"

#include "solver/bound/dual_ascent.h"
#include "solver/bound/pruned_root.h"
#include "solver/eliminate/late_elimination.h"
#include "solver/tuning.h"

#include <utility>

namespace shardprop::solver {

bool Branching::is_due(int rounds) const {
  if (!state_.options.passes.enabled(Pass::kBranchAndBound)) return false;
  // If the bound is close, pruning pays off long before the bound has settled.
  const double gap = state_.dual_gap();
  if (gap <= tuning::kBranchGap * state_.core_target() &&
      gap <= tried_gap_ / 2 && !(tree_ && tree_->done())) {
    return true;
  }
  const bool small = state_.core->unary.size() <= tuning::kSmallCoreChoices;
  const bool ready = small ? rounds >= 2
                           : !state_.dual || state_.dual->stalled() ||
                                 state_.dual->work() > tuning::kDualWorkFirst;
  const bool news =
      state_.best.known() && state_.best.cost_in_units() != tried_below_;
  if (!ready || (tried_ && !news)) return false;
  return !tree_ || (!tree_->done() && tree_->work() < tuning::kKeepTreeWork);
}

void Branching::start() {
  const Int128 below = state_.best.cost_in_units();
  tried_ = true;
  tried_below_ = below;
  tried_gap_ = state_.dual_gap();
  PrunedRoot root(state_, state_.core_target());
  const std::size_t choices = root.num_choices();
  const bool few =
      static_cast<double>(choices) <=
      tuning::kFewChoicesShare * static_cast<double>(state_.core->unary.size());
  if (!root.network.infeasible && few &&
      state_.run(Pass::kLateElimination, [&] {
        return eliminate_rest(state_, root, tuning::kMostEliminationEntries,
                              below);
      })) {
    return;
  }
  if (root.network.infeasible) {
    // No assignment is better than the best known one.
    const Incumbent::State before = state_.best.state();
    state_.best.close(below);
    state_.credit(Pass::kBranchAndBound, before);
  } else if (choices <= tuning::kMostBranchedChoices) {
    if (tree_) {
      state_.spent_elsewhere += tree_->work();
      finish();
    }
    variable_ = std::move(root.variable);
    tree_ = std::make_unique<BranchAndBound>(
        std::move(root.network), below,
        state_.dual_has_bound() ? state_.dual->best_prices()
                                : std::vector<double>(),
        state_.options.passes, state_.options.seed);
  }
}

void Branching::run(std::uint64_t work) {
  const auto start = std::chrono::steady_clock::now();
  // The tree adds the time of the passes that it runs itself.
  tree_->run(work, state_.budget, state_.passes);
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  state_.passes.add(Pass::kBranchAndBound, 1, took.count());
}

void Branching::finish() {
  if (tree_) state_.passes.add_work(Pass::kBranchAndBound, tree_->work());
}

std::vector<int> Branching::gather() {
  std::vector<int> found;
  if (!tree_) return found;
  Incumbent& best = state_.best;
  const Incumbent::State before = best.state();
  if (tree_->improved() && tree_->best_cost() < best.cost_in_units()) {
    // The core numbers the living variables in the same order.
    found = tree_->choices();
    state_.offer(found, variable_);
  }
  if (best.known()) tree_->lower(best.cost_in_units());
  if (tree_->done()) {
    best.close(tree_->bound());
  } else if (best.known()) {
    best.raise_bound(tree_->bound());
  }
  state_.credit(Pass::kBranchAndBound, before);
  return found;
}

}  // namespace shardprop::solver
