#include "solver/search/branching.h"

#include "solver/bound/dual_ascent.h"
#include "solver/eliminate/late_elimination.h"
#include "solver/bound/pruned_root.h"

#include <utility>

namespace shardprop::solver {
namespace {

// Networks with more choices are too large for branching.
constexpr std::size_t kMostChoices = 8'000;
// The dual bound is close if the gap is within this share of the cost.
constexpr double kCloseGap = 0.02;
// If pruning leaves at most this share of the choices, elimination is tried.
constexpr double kFewChoices = 0.5;
// A tree with more work than this is kept, even if better costs become known.
constexpr std::uint64_t kYoung = 200'000'000;

}  // namespace

bool Branching::is_due(int rounds) const {
  if (!state_.options.passes.enabled(Pass::kBranchAndBound)) return false;
  // If the bound is close, pruning pays off long before the bound has settled.
  const double gap = state_.dual_gap();
  if (gap <= kCloseGap * state_.core_target() && gap <= tried_gap_ / 2 &&
      !(tree_ && tree_->done())) {
    return true;
  }
  const bool small = state_.core->unary.size() <= kSmallChoices;
  const bool ready = small ? rounds >= 2
                           : !state_.dual || state_.dual->stalled() ||
                                 state_.dual->work() > kDualFirst;
  const bool news =
      state_.best.known() && state_.best.cost_in_units() != tried_below_;
  if (!ready || (tried_ && !news)) return false;
  return !tree_ || (!tree_->done() && tree_->work() < kYoung);
}

void Branching::start() {
  const Int128 below = state_.best.cost_in_units();
  tried_ = true;
  tried_below_ = below;
  tried_gap_ = state_.dual_gap();
  PrunedRoot root(state_, state_.core_target());
  const std::size_t choices = root.num_choices();
  const bool few = static_cast<double>(choices) <=
                   kFewChoices * static_cast<double>(state_.core->unary.size());
  if (!root.network.infeasible && few &&
      eliminate_rest(state_, root, kEliminationCap, below)) {
    return;
  }
  if (root.network.infeasible) {
    // No assignment is better than the best known one.
    state_.best.close(below);
  } else if (choices <= kMostChoices) {
    if (tree_) state_.spent_elsewhere += tree_->work();
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
  tree_->run(work, state_.budget, state_.clock);
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  state_.clock.add(Pass::kBranchAndBound, 1, took.count());
}

std::vector<int> Branching::gather() {
  std::vector<int> found;
  if (!tree_) return found;
  Incumbent& best = state_.best;
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
  return found;
}

}  // namespace shardprop::solver
