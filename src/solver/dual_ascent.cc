#include "solver/dual_ascent.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardprop::solver {
namespace {

constexpr int kRoundsWithout = 4;

}  // namespace

bool DualAscent::is_due(int rounds) const {
  if (!state_.options.passes.enabled(Pass::kDualBound)) return false;
  if (!state_.dual) return state_.best.known() || rounds == kRoundsWithout;
  return state_.best.known() && !has_target_;
}

void DualAscent::start() {
  has_target_ = state_.best.known();
  std::vector<double> prices =
      state_.dual ? state_.dual->best_prices() : std::vector<double>();
  if (state_.dual) state_.spent_elsewhere += state_.dual->work();
  state_.dual.reset();
  // Entries above the best known cost cannot be part of anything better; a low
  // ceiling makes the bound stronger and its sums finer.
  double ceiling = state_.core->ceiling;
  if (has_target_) {
    ceiling = std::min(ceiling, std::max(1.0, state_.core_target()));
  }
  state_.dual_core = std::make_unique<Core>(state_.network, ceiling);
  state_.dual = std::make_unique<DualBound>(*state_.dual_core);
  if (!prices.empty()) state_.dual->set_prices(prices);
}

void DualAscent::run(std::uint64_t work) {
  DualBound& dual = *state_.dual;
  state_.clock.time(Pass::kDualBound, [&] {
    const std::uint64_t until = dual.work() + work;
    while (dual.work() < until && !dual.stalled() && !state_.stop.raised()) {
      dual.advance(state_.core_target());
    }
  });
}

void DualAscent::gather() {
  if (decoded_.empty()) decoded_ = DualBound(*state_.core).decode();
  if (!state_.dual_has_bound()) return;
  state_.best.raise_bound(
      state_.dual_core->offset +
      static_cast<Int128>(std::ceil(state_.dual->best_bound())));
  prices_ = state_.dual->best_prices();
  decoded_ = state_.dual->decode();
}

}  // namespace shardprop::solver
