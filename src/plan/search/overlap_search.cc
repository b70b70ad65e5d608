#include "plan/search/overlap_search.h"

#include "plan/search/tie_breaking.h"
#include "plan/tuning.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <utility>

namespace shardprop {

bool OverlapSearch::is_close() const {
  const PlanSolution& best = best_.solution();
  return best_.is_done() ||
         static_cast<double>(best.evaluation.objective - best.lower_bound) <=
             tuning::kClosedGap *
                 static_cast<double>(best.evaluation.objective);
}

std::vector<std::int64_t> OverlapSearch::run(SolvedNetwork last) {
  last_ = std::move(last);
  std::vector<std::int64_t>& multipliers = network_.overlap_multipliers;
  multipliers.resize(search_.problem().window_loads().size(), 0);
  // Overlappable time was free, and no plan has too much of it.
  if (last_.evaluation.exposed() == 0 &&
      best_.solution().evaluation.exposed() == 0 &&
      std::all_of(multipliers.begin(), multipliers.end(),
                  [](std::int64_t one) { return one == 0; })) {
    return {};
  }
  note();
  price();
  if (settles_ && !best_.is_done()) {
    search_.run(PlanProcedure::kOverlapBranching,
                [&] { branching_.run(network_); });
  }
  return network_.overlap_multipliers;
}

bool OverlapSearch::solve(const Attempt& attempt) {
  SolvedNetwork solved = search_.solve(network_, attempt);
  if (!solved) return false;
  last_ = std::move(solved);
  note();
  return true;
}

// Returns whether one solve takes more than a tenth of the work for all
// branches.
bool OverlapSearch::takes_long() const {
  return search_.first_work() > tuning::kLargeProblemWork;
}

// Raises the bound, and solves mixes of the plans found, as exactly as the time
// allows. Leaves the best multipliers in `network_`.
void OverlapSearch::price() {
  const Windows& windows = search_.problem().windows();
  const std::size_t of_window = search_.problem().window_loads().of_window();
  std::vector<std::size_t> classes;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    for (std::size_t load = 0; load < of_window; ++load) {
      classes.push_back(windows.class_of(w) * of_window + load);
    }
  }
  OverlapMultipliers prices(network_.overlap_multipliers, std::move(classes));
  double enough_gap =
      takes_long() ? tuning::kLargeProblemPricingGap : tuning::kPricingGap;
  for (int round = 0; round < tuning::kMostPricingRounds; ++round) {
    // The best plan may be one that the search began with.
    const std::optional<std::int64_t> objective = best_.found_here();
    const std::int64_t bound = best_.solution().lower_bound;
    search_.run(PlanProcedure::kOverlapMultipliers,
                [&] { raise_bound(prices, enough_gap); });
    if (mixes_) {
      search_.run(PlanProcedure::kLayerMix, [&] { mix_.run(network_); });
    }
    if (!settles_ || is_close()) return;
    if (mixes_) {
      search_.run(PlanProcedure::kLayerResolve,
                  [&] { mix_.resolve_layers(network_); });
    }
    if (is_close()) return;
    enough_gap = tuning::kPricingGap;
    if (!solve({.enough_gap = enough_gap})) return;
    prices.go_back();
    if (best_.found_here() == objective &&
        best_.solution().lower_bound == bound) {
      return;
    }
  }
}

void OverlapSearch::raise_bound(OverlapMultipliers& prices, double enough_gap) {
  std::vector<std::int64_t> best = network_.overlap_multipliers;
  std::int64_t bound = best_.solution().lower_bound;
  const Budget for_bound =
      search_.budget().narrowed(1 - tuning::kMixReserveBudgetShare);
  for (int i = 0; i < tuning::kMostMultipliersInRound && !is_close(); ++i) {
    Budget now = for_bound;
    now.charge(search_.budget().work_spent() - for_bound.work_spent());
    if (now.is_stopped()) break;
    // The last network may have been restricted. Its bound is then not valid
    // for other networks.
    const std::int64_t last_bound =
        std::min(last_.bound, best_.solution().lower_bound);
    if (!prices.learn(last_.evaluation, last_bound)) break;
    network_.overlap_multipliers = prices.prices();
    if (!solve({.budget = search_.budget().share(tuning::kPricingBudgetShare),
                .enough_gap = enough_gap,
                .enough_cost = best_.solution().lower_bound})) {
      break;
    }
    if (best_.solution().lower_bound > bound) {
      bound = best_.solution().lower_bound;
      best = network_.overlap_multipliers;
    }
  }
  network_.overlap_multipliers = std::move(best);
}

// Keeps the last solution. The first one may belong to a network with other
// variables. Only its plan is used then.
void OverlapSearch::note() {
  if (last_.assignment.is_of(identity_of(search_.problem(), network_))) {
    branching_.add(last_.assignment, last_.evaluation);
    if (mixes_) mix_.add(last_);
  }
  note_uniform();
}

void OverlapSearch::note_uniform() {
  if (!best_.fits(last_.evaluation)) return;
  if (uniform_ && *uniform_ <= last_.evaluation.objective) return;
  if (is_uniform(search_.problem(), last_.plan)) {
    uniform_ = last_.evaluation.objective;
  }
}

}  // namespace shardprop
