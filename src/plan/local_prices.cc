#include "plan/local_prices.h"

#include <algorithm>
#include <utility>

namespace shardprop {

const std::vector<std::int64_t>& LocalPrices::of(PlanVariableId id) {
  const PlanVariable& variable = problem_.variable(id);
  prices_ = variable.choices->costs;
  for (std::size_t u = 0; u < variable.uses.size(); ++u) add_use(id, u);
  for (std::size_t o = 0; o < variable.makes.size(); ++o) {
    add_made(id, variable.uses.size() + o, variable.makes[o]);
  }
  return prices_;
}

void LocalPrices::set_memory_price(double nanoseconds_per_byte,
                                   std::vector<bool> lives_at_peak) {
  memory_price_ = nanoseconds_per_byte;
  lives_at_peak_ = std::move(lives_at_peak);
}

LayoutId LocalPrices::layout(PlanUse use) const {
  return problem_.variable(use.variable)
      .choices->layout(choices_[use.variable.index()], use.operand);
}

// Distinct layouts that decided users other than `variable` want, and the
// undecided users.
void LocalPrices::wanted_by_others(PlanVariableId variable,
                                   const PlanValue& value) {
  wanted_.clear();
  undecided_.clear();
  for (const PlanUse& use : value.uses) {
    if (use.variable == variable) continue;
    if (choices_[use.variable.index()] == kUndecided) {
      undecided_.push_back(use);
      continue;
    }
    const LayoutId wanted = layout(use);
    if (std::find(wanted_.begin(), wanted_.end(), wanted) == wanted_.end()) {
      wanted_.push_back(wanted);
    }
  }
}

void LocalPrices::add_use(PlanVariableId id, std::size_t use) {
  const PlanVariable& variable = problem_.variable(id);
  const ValueId value_id = variable.uses[use];
  const PlanValue& value = problem_.value(value_id);
  if (value.maker == id || choices_[value.maker.index()] == kUndecided) return;
  const ChoiceSet& set = *variable.choices;
  const LayoutId made = problem_.variable(value.maker)
                            .choices->layout(choices_[value.maker.index()],
                                             value.operand);
  wanted_by_others(id, value);
  by_layout_.clear();
  for (const LayoutId wanted : set.layouts[use]) {
    const bool shared =
        std::find(wanted_.begin(), wanted_.end(), wanted) != wanted_.end();
    by_layout_.push_back(
        shared ? 0 : problem_.move_nanoseconds(value_id, made, wanted));
  }
  // An earlier operand that takes the same value in the same layout has paid.
  std::vector<std::size_t> earlier;
  for (std::size_t u = 0; u < use; ++u) {
    if (variable.uses[u] == value_id) earlier.push_back(u);
  }
  for (std::size_t c = 0; c < prices_.size(); ++c) {
    const LayoutId wanted = set.layout(c, use);
    const bool paid =
        std::any_of(earlier.begin(), earlier.end(), [&](std::size_t u) {
          return set.layout(c, u) == wanted;
        });
    if (!paid) prices_[c] += by_layout_[set.pick(c, use)];
  }
}

// The least that `use` adds when its value is made as `made`, beyond the least
// its variable costs at all.
std::int64_t LocalPrices::ahead(PlanUse use, ValueId value,
                                LayoutId made) const {
  const ChoiceSet& set = *problem_.variable(use.variable).choices;
  std::int64_t least = kUnreachable;
  for (std::size_t l = 0; l < set.layouts[use.operand].size(); ++l) {
    const std::int64_t extra = set.extra[use.operand][l];
    if (extra >= least) continue;
    least = std::min(
        least, extra + problem_.move_nanoseconds(
                           value, made, set.layouts[use.operand][l]));
  }
  return least;
}

void LocalPrices::add_made(PlanVariableId id, std::size_t operand,
                           ValueId value_id) {
  const PlanValue& value = problem_.value(value_id);
  const ChoiceSet& set = *problem_.variable(id).choices;
  wanted_by_others(id, value);
  const bool weighs = !lives_at_peak_.empty() &&
                      lives_at_peak_[value_id.index()];
  by_layout_.clear();
  for (const LayoutId made : set.layouts[operand]) {
    std::int64_t cost = 0;
    for (const LayoutId wanted : wanted_) {
      cost += problem_.move_nanoseconds(value_id, made, wanted);
    }
    for (const PlanUse& use : undecided_) cost += ahead(use, value_id, made);
    if (weighs) {
      cost += static_cast<std::int64_t>(
          memory_price_ *
          static_cast<double>(problem_.local_bytes(value_id, made)));
    }
    by_layout_.push_back(cost);
  }
  for (std::size_t c = 0; c < prices_.size(); ++c) {
    prices_[c] += by_layout_[set.pick(c, operand)];
  }
}

}  // namespace shardprop
