// Functions that make a ChoiceSet from a part of another one, or from a list of
// layouts.
#pragma once

#include "plan/problem/plan_problem.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

// Returns a set with only the choices in `kept`.
std::shared_ptr<ChoiceSet> with_choices(const ChoiceSet& set,
                                        std::span<const std::uint32_t> kept);

// Drops the layouts that no choice of the set uses.
std::shared_ptr<ChoiceSet> without_spare_layouts(
    std::shared_ptr<ChoiceSet> set);

// Returns the choices in which the operand has the layout `required`. The set is
// empty if no choice has it.
std::shared_ptr<ChoiceSet> restricted(const ChoiceSet& set, std::size_t operand,
                                      LayoutId required);

// Returns a set with one choice for each layout, which every operand then has.
std::shared_ptr<ChoiceSet> same_layout_everywhere(
    const std::vector<LayoutId>& layouts, std::size_t uses, std::size_t makes);

}  // namespace shardprop
