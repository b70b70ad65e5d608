#include "plan/local_prices.h"

#include <algorithm>
#include <utility>

namespace shardprop {

void LocalPrices::set_memory_price(double nanoseconds_per_byte,
                                   std::vector<bool> lives_at_peak) {
  memory_price_ = nanoseconds_per_byte;
  lives_at_peak_ = std::move(lives_at_peak);
}

void LocalPrices::look_at(PlanVariableId id) {
  variable_ = id;
  const PlanVariable& variable = problem_.variable(id);
  operands_.resize(variable.choices->layouts.size());
  for (std::size_t u = 0; u < variable.uses.size(); ++u) view_use(u);
  for (std::size_t o = 0; o < variable.makes.size(); ++o) {
    view_made(variable.uses.size() + o, variable.makes[o]);
  }
}

// Distinct layouts that decided users other than the variable want, and the
// users that are undecided.
void LocalPrices::collect_users(const PlanValue& value,
                                OperandView& view) const {
  view.wanted.clear();
  view.undecided.clear();
  for (const PlanUse& use : value.uses) {
    if (use.variable == variable_) continue;
    const std::uint32_t choice = choices_[use.variable.index()];
    if (choice == kUndecided) {
      view.undecided.push_back(use);
      continue;
    }
    const LayoutId wanted =
        problem_.variable(use.variable).choices->layout(choice, use.operand);
    if (std::find(view.wanted.begin(), view.wanted.end(), wanted) ==
        view.wanted.end()) {
      view.wanted.push_back(wanted);
    }
  }
}

void LocalPrices::view_use(std::size_t use) {
  const PlanVariable& variable = problem_.variable(variable_);
  OperandView& view = operands_[use];
  view.value = variable.uses[use];
  view.prices.assign(variable.choices->layouts[use].size(), kUnknown);
  view.earlier.clear();
  const PlanValue& value = problem_.value(view.value);
  const std::uint32_t made = choices_[value.maker.index()];
  view.counts = value.maker != variable_ && made != kUndecided;
  if (!view.counts) return;
  view.made =
      problem_.variable(value.maker).choices->layout(made, value.operand);
  collect_users(value, view);
  for (std::size_t u = 0; u < use; ++u) {
    if (variable.uses[u] == view.value) view.earlier.push_back(u);
  }
}

void LocalPrices::view_made(std::size_t operand, ValueId value) {
  OperandView& view = operands_[operand];
  view.value = value;
  view.counts = true;
  view.earlier.clear();
  view.prices.assign(
      problem_.variable(variable_).choices->layouts[operand].size(), kUnknown);
  collect_users(problem_.value(value), view);
}

std::int64_t LocalPrices::operand_price(std::size_t operand,
                                        std::size_t layout) {
  OperandView& view = operands_[operand];
  std::int64_t& price = view.prices[layout];
  if (price != kUnknown) return price;
  const ChoiceSet& set = *problem_.variable(variable_).choices;
  const LayoutId id = set.layouts[operand][layout];
  if (operand < set.num_uses) {
    const bool shared = std::find(view.wanted.begin(), view.wanted.end(), id) !=
                        view.wanted.end();
    return price = shared
                       ? 0
                       : problem_.move_nanoseconds(view.value, view.made, id);
  }
  std::int64_t sum = 0;
  for (const LayoutId wanted : view.wanted) {
    sum += problem_.move_nanoseconds(view.value, id, wanted);
  }
  for (const PlanUse& use : view.undecided) sum += ahead(use, view.value, id);
  if (!lives_at_peak_.empty() && lives_at_peak_[view.value.index()]) {
    sum += static_cast<std::int64_t>(
        memory_price_ *
        static_cast<double>(problem_.resident_bytes(view.value, id)));
  }
  return price = sum;
}

// The least that `use` adds when its value is made as `made`, beyond the least
// its variable costs at all.
std::int64_t LocalPrices::ahead(PlanUse use, ValueId value,
                                LayoutId made) const {
  const ChoiceSet& set = *problem_.variable(use.variable).choices;
  const std::vector<LayoutId>& layouts = set.layouts[use.operand];
  const std::vector<std::int64_t>& extra = set.extra[use.operand];
  std::int64_t least = kUnreachable;
  // As it is made, it needs no move: a bound for the others.
  for (std::size_t l = 0; l < layouts.size(); ++l) {
    if (layouts[l] == made) least = extra[l];
  }
  for (std::size_t l = 0; l < layouts.size(); ++l) {
    if (extra[l] >= least) continue;
    least = std::min(
        least, extra[l] + problem_.move_nanoseconds(value, made, layouts[l]));
  }
  return least;
}

// Whether an earlier operand takes the same value in the same layout.
bool LocalPrices::paid_before(std::uint32_t choice, std::size_t operand) const {
  const ChoiceSet& set = *problem_.variable(variable_).choices;
  const LayoutId wanted = set.layout(choice, operand);
  const auto& earlier = operands_[operand].earlier;
  return std::any_of(earlier.begin(), earlier.end(), [&](std::size_t u) {
    return set.layout(choice, u) == wanted;
  });
}

std::int64_t LocalPrices::price(std::uint32_t choice) {
  return price_below(choice, std::numeric_limits<std::int64_t>::max());
}

// The price, or anything not below `below` once it is clear that it is.
std::int64_t LocalPrices::price_below(std::uint32_t choice,
                                      std::int64_t below) {
  const ChoiceSet& set = *problem_.variable(variable_).choices;
  std::int64_t sum = set.costs[choice];
  // What is known first: it may spare working out the rest.
  for (const bool known : {true, false}) {
    for (std::size_t o = 0; o < operands_.size(); ++o) {
      const std::size_t layout = set.pick(choice, o);
      if (!operands_[o].counts ||
          (operands_[o].prices[layout] != kUnknown) != known ||
          paid_before(choice, o)) {
        continue;
      }
      if (!known && sum >= below) return sum;
      sum += operand_price(o, layout);
    }
  }
  return sum;
}

}  // namespace shardprop
