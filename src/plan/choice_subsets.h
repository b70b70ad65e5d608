// Parts of a set of choices, and sets of layouts as choices.
#pragma once

#include "plan/plan_problem.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

// A set with some of the choices.
std::shared_ptr<ChoiceSet> with_choices(const ChoiceSet& set,
                                        std::span<const std::uint32_t> kept);

// With no layouts but those that its choices have.
std::shared_ptr<ChoiceSet> without_spare_layouts(
    std::shared_ptr<ChoiceSet> set);

// A set with the operand's layout fixed; empty when no choice has it.
std::shared_ptr<ChoiceSet> restricted(const ChoiceSet& set, std::size_t operand,
                                      LayoutId wanted);

// A choice a layout, the same for every operand.
std::shared_ptr<ChoiceSet> same_layout_everywhere(
    const std::vector<LayoutId>& layouts, std::size_t uses, std::size_t makes);

}  // namespace shardprop
