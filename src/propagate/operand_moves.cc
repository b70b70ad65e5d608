#include "propagate/operand_moves.h"

#include "base/index.h"
#include "base/try.h"

#include <shardprop/placement/partials.h>

#include <algorithm>

namespace shardprop {
namespace {

// A plan may use only the partials of its two ends. A search with one more
// partial finds a cheaper plan only if partials turn into partials that are
// cheaper to reduce. P(sum) is never more expensive than P(avg).
bool adds_nothing(Placement partial, const Layout& given) {
  for (const Placement own : given.placements()) {
    if (!own.is_partial() || own == partial || !partials_mix(own, partial)) {
      continue;
    }
    if (own != Placement::partial(ReduceOp::kSum) ||
        partial != Placement::partial(ReduceOp::kAvg)) {
      return false;
    }
  }
  return true;
}

// The most mesh dims larger than 1 for which pairs of strided layouts are
// searched.
constexpr int kMostSearchedDims = 3;

// Returns the layout with all tensor dims that have strided shards unsharded.
Layout without_strided(const Layout& layout) {
  Layout out = layout;
  for (int m = 0; m < layout.mesh_ndim(); ++m) {
    if (!layout[m].is_strided()) continue;
    for (const std::int32_t cut : layout.cuts(layout[m].dim())) {
      auto without = out.with(cut, Placement::replicate());
      if (!without) throw InternalError("R does not fit a layout");
      out = *std::move(without);
    }
  }
  return out;
}

}  // namespace

OperandMoves::OperandMoves(CachingPlanner& planner,
                           redistribute::RecentReaches& recent,
                           const Layout& given, const TensorMeta& meta,
                           std::span<const Placement> partials,
                           redistribute::Reach::Orders orders)
    : planner_(&planner), recent_(&recent), given_(&given), meta_(&meta) {
  constexpr int kMostRank = 15;  // four bits of a word count the cuts of a dim
  const bool lists =
      meta.rank() <= kMostRank &&
      std::all_of(partials.begin(), partials.end(), [&](Placement partial) {
        return adds_nothing(partial, given);
      });
  if (!lists) return;
  goes_around_ = planner.planner().mesh().num_active_dims() > kMostSearchedDims;
  Layout start = given;
  if (goes_around_ && given.has_strided()) {
    start = without_strided(given);
    const auto gathers = planner.cost(given, start, meta);
    if (!gathers) return;
    gathers_ = *gathers;
  }
  reach_ = recent.take(planner.planner(), start, meta, partials, orders);
  if (reach_ == nullptr) return;
  shifts_.resize(static_cast<std::size_t>(given.mesh_ndim()));
  const redistribute::ActiveDims& active = reach_->active();
  for (std::size_t i = 0; i < active.mesh_dims.size(); ++i) {
    shifts_[index(active.mesh_dims[i])] = redistribute::State::shift(i);
  }
}

std::uint8_t OperandMoves::symbol(Placement placement) const {
  const auto symbol = reach_->alphabet().find(placement);
  if (!symbol) throw InternalError("an operand is asked for a strange partial");
  return *symbol;
}

std::optional<std::uint64_t> OperandMoves::code_of(const Layout& to) const {
  if (reach_ == nullptr) return std::nullopt;
  // The search may pass from a shard over R to a partial. The planner refuses
  // such a pair, so that no cost depends on how far the search went.
  for (int m = 0; m < to.mesh_ndim(); ++m) {
    if ((*given_)[m].is_shard() && to[m].is_partial()) return std::nullopt;
  }
  const auto state = to_state(to, reach_->active(), reach_->alphabet());
  if (!state || !reach_->is_asked(state->code())) return std::nullopt;
  return state->code();
}

bool OperandMoves::is_detour(const Layout& to) const {
  return reach_ != nullptr && goes_around_ &&
         (given_->has_strided() || to.has_strided());
}

Result<std::int64_t> OperandMoves::cost(const Layout& to) {
  if (to == *given_) return 0;
  const bool detour = is_detour(to);
  const auto code = code_of(detour ? without_strided(to) : to);
  if (code && detour) {
    // The limit grows in few steps, to far more than any move takes.
    for (std::int64_t limit = sat_add(beyond_, beyond_ / 4);
         nanoseconds(*code) == kImpossible && beyond_ != kImpossible;
         limit = sat_add(beyond_, beyond_)) {
      extend(limit);
    }
  }
  if (code && nanoseconds(*code) != kImpossible) return nanoseconds(*code);
  for (const Priced& priced : priced_) {
    if (priced.to == to) return priced.cost;
  }
  priced_.push_back({to, planner_->cost(*given_, to, *meta_)});
  return priced_.back().cost;
}

Result<std::shared_ptr<const RedistributePlan>> OperandMoves::plan(
    const Layout& to) {
  const auto code = is_detour(to) ? std::nullopt : code_of(to);
  if (!code) return planner_->plan(*given_, to, *meta_);
  // The result must not depend on how far the search happens to have gone.
  if (nanoseconds(*code) == kImpossible) {
    SP_ASSIGN(const std::int64_t nanoseconds, cost(to));
    extend(nanoseconds);
  }
  return std::make_shared<const RedistributePlan>(reach_->plan(to));
}

}  // namespace shardprop
