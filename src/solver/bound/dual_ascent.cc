#include "solver/bound/dual_ascent.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace shardprop::solver {

bool DualAscent::is_due(int rounds) const {
  if (!state_.options.passes.enabled(Pass::kDualBound)) return false;
  if (!state_.dual) {
    return is_warm() || state_.best.known() ||
           rounds == tuning::kRoundsWithoutDual;
  }
  return state_.best.known() && !has_target_;
}

void DualAscent::start() {
  has_target_ = state_.best.known();
  std::vector<double> prices =
      state_.dual ? state_.dual->best_prices() : std::vector<double>();
  if (state_.dual) {
    state_.spent_elsewhere += state_.dual->work();
    record(state_.dual->work(), state_.dual->leaps());
  }
  state_.dual.reset();
  // Entries above the best known cost cannot be part of a better assignment. A
  // low ceiling makes the bound stronger and its sums finer.
  double ceiling = state_.core->ceiling;
  if (has_target_) {
    ceiling = std::min(ceiling, std::max(1.0, state_.core_target()));
  }
  state_.dual_core = std::make_unique<Core>(state_.network, ceiling);
  state_.dual = std::make_unique<DualBound>(
      *state_.dual_core, state_.options.passes.enabled(Pass::kExtrapolation));
  if (!prices.empty()) state_.dual->set_prices(prices);
  if (state_.options.messages != nullptr) {
    begin_with(*state_.options.messages);
  }
  if (is_warm()) state_.dual->evaluate();
}

namespace {

using Ends = std::pair<std::uint32_t, std::uint32_t>;

template <class Look>
void for_each_arc(const Core& core, const Look& look) {
  for (int v = 0; v < core.size(); ++v) {
    const int me = core.network_variable[index(v)];
    for (auto i = core.arc_begin[index(v)]; i < core.arc_begin[index(v) + 1];
         ++i) {
      const int other = core.network_variable[index(core.arc_list[i].other)];
      look(i, v, me, Ends{other, me});
    }
  }
}

}  // namespace

// A choice that has no message costs as much as the costliest choice with one.
void DualAscent::begin_with(const Messages& messages) {
  if (messages.told.empty()) return;
  const auto left = state_.network.choices_left();
  for_each_arc(*state_.dual_core, [&](std::size_t arc, int, int me, Ends ends) {
    const auto known = messages.told.find(ends);
    if (known == messages.told.end()) return;
    const std::vector<double>& told = known->second;
    double most = -kInfinity;
    for (const double cost : told) {
      if (std::isfinite(cost)) most = std::max(most, cost);
    }
    std::vector<double> costs;
    for (const int c : left[index(me)]) {
      const bool is_known =
          index(c) < told.size() && std::isfinite(told[index(c)]);
      costs.push_back(is_known ? told[index(c)] : most);
    }
    if (std::isfinite(most)) state_.dual->set_message(arc, costs);
  });
}

void DualAscent::leave(Messages& messages) const {
  if (!state_.dual_has_bound()) return;
  const auto left = state_.network.choices_left();
  for_each_arc(*state_.dual_core,
               [&](std::size_t arc, int v, int me, Ends ends) {
                 const auto costs = state_.dual->best_message(arc, v);
                 std::vector<double>& told = messages.told[ends];
                 for (std::size_t c = 0; c < costs.size(); ++c) {
                   const auto given = index(left[index(me)][c]);
                   if (told.size() <= given) told.resize(given + 1, kInfinity);
                   told[given] = costs[c];
                 }
               });
}

void DualAscent::run(std::uint64_t work) {
  DualBound& dual = *state_.dual;
  state_.passes.time(Pass::kDualBound, [&] {
    const std::uint64_t until = dual.work() + work;
    while (dual.work() < until && !dual.stalled() &&
           !state_.budget.is_cut_off()) {
      dual.advance(state_.core_target());
    }
  });
}

void DualAscent::record(std::uint64_t work, const DualBound::Leaps& leaps) {
  state_.passes.add_work(Pass::kDualBound, work);
  state_.passes.add(Pass::kExtrapolation, leaps.count, leaps.seconds);
  state_.passes.add_work(Pass::kExtrapolation, leaps.work);
  state_.passes.add_gain(
      Pass::kExtrapolation, leaps.kept,
      saturated(leaps.raised_by * static_cast<double>(state_.network.unit)));
}

void DualAscent::finish() {
  if (state_.dual) record(state_.dual->work(), state_.dual->leaps());
}

void DualAscent::gather() {
  if (decoded_.empty()) decoded_ = DualBound(*state_.core).decode();
  if (!state_.dual_has_bound()) return;
  const Incumbent::State before = state_.best.state();
  state_.best.raise_bound(
      state_.dual_core->offset +
      static_cast<Int128>(std::ceil(state_.dual->best_bound())));
  state_.credit(Pass::kDualBound, before);
  prices_ = state_.dual->best_prices();
  decoded_ = state_.dual->decode();
}

}  // namespace shardprop::solver
