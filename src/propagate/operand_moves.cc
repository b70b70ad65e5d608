#include "propagate/operand_moves.h"

#include "base/index.h"
#include "base/try.h"

#include <shardprop/placement/partials.h>

#include <algorithm>

namespace shardprop {
namespace {

// A plan may use the partials of its two ends only. Searching with one more
// finds nothing cheaper unless terms turn into terms that are cheaper to
// reduce; sums are as cheap as averages or cheaper.
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
  reach_ = recent.take(planner.planner(), given, meta, partials, orders);
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
  const auto state = to_state(to, reach_->active(), reach_->alphabet());
  if (!state || !reach_->is_asked(state->code())) return std::nullopt;
  return state->code();
}

Result<std::int64_t> OperandMoves::cost(const Layout& to) {
  if (to == *given_) return 0;
  const auto code = code_of(to);
  if (code && nanoseconds(*code) != kImpossible) return nanoseconds(*code);
  for (const Priced& priced : priced_) {
    if (priced.to == to) return priced.cost;
  }
  priced_.push_back({to, planner_->cost(*given_, to, *meta_)});
  return priced_.back().cost;
}

Result<std::shared_ptr<const RedistributePlan>> OperandMoves::plan(
    const Layout& to) {
  const auto code = code_of(to);
  if (!code) return planner_->plan(*given_, to, *meta_);
  // How far the search happens to have gone decides nothing.
  if (nanoseconds(*code) == kImpossible) {
    SP_ASSIGN(const std::int64_t nanoseconds, cost(to));
    extend(nanoseconds);
  }
  return std::make_shared<const RedistributePlan>(reach_->plan(to));
}

}  // namespace shardprop
