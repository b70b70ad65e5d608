#include "plan/problem/choices/choice_subsets.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// Returns the entries of the choices in `kept`. The result is empty for a list
// that this kind of variable does not have.
template <class T>
std::vector<T> entries_of(const std::vector<T>& by_choice,
                          std::span<const std::uint32_t> kept) {
  std::vector<T> out;
  if (by_choice.empty()) return out;
  out.reserve(kept.size());
  for (const std::uint32_t c : kept) out.push_back(by_choice[c]);
  return out;
}

}  // namespace

std::shared_ptr<ChoiceSet> with_choices(const ChoiceSet& set,
                                        std::span<const std::uint32_t> kept) {
  auto out = std::make_shared<ChoiceSet>(set);
  const std::size_t operands = set.layouts.size();
  out->picks.clear();
  for (const std::uint32_t c : kept) {
    const auto row =
        set.picks.begin() + static_cast<std::ptrdiff_t>(c * operands);
    out->picks.insert(out->picks.end(), row,
                      row + static_cast<std::ptrdiff_t>(operands));
  }
  out->costs = entries_of(set.costs, kept);
  out->compute = entries_of(set.compute, kept);
  out->overlapped = entries_of(set.overlapped, kept);
  out->reduced_late = entries_of(set.reduced_late, kept);
  out->state_layouts = entries_of(set.state_layouts, kept);
  out->op.strategies = entries_of(set.op.strategies, kept);
  return out;
}

std::shared_ptr<ChoiceSet> without_spare_layouts(
    std::shared_ptr<ChoiceSet> set) {
  const std::size_t operands = set->layouts.size();
  for (std::size_t o = 0; o < operands; ++o) {
    std::vector<LayoutId> used;
    for (std::size_t c = 0; c < set->size(); ++c) {
      const LayoutId id = set->layout(c, o);
      const auto found = std::find(used.begin(), used.end(), id);
      set->picks[c * operands + o] =
          static_cast<std::uint32_t>(found - used.begin());
      if (found == used.end()) used.push_back(id);
    }
    set->layouts[o] = std::move(used);
  }
  return set;
}

std::shared_ptr<ChoiceSet> restricted(const ChoiceSet& set, std::size_t operand,
                                      LayoutId required) {
  std::vector<std::uint32_t> kept;
  for (std::uint32_t c = 0; c < set.size(); ++c) {
    if (set.layout(c, operand) == required) kept.push_back(c);
  }
  return with_choices(set, kept);
}

std::shared_ptr<ChoiceSet> same_layout_everywhere(
    const std::vector<LayoutId>& layouts, std::size_t uses, std::size_t makes) {
  auto set = std::make_shared<ChoiceSet>();
  set->num_uses = uses;
  set->layouts.assign(uses + makes, layouts);
  for (std::size_t c = 0; c < layouts.size(); ++c) {
    set->picks.insert(set->picks.end(), uses + makes,
                      static_cast<std::uint32_t>(c));
  }
  set->costs.assign(layouts.size(), 0);
  return set;
}

}  // namespace shardprop
