// forced_choice() leaves one operator only the choices that PlanOptions::forced
// names.
#pragma once

#include "plan/problem/problem_data.h"

#include <memory>
#include <string>

namespace shardprop {

// Returns the choices of `node` that have the forced layouts. Precondition: the
// options force a choice of this node. Error: kPinNoStrategy, at `place`.
Result<std::shared_ptr<const ChoiceSet>> forced_choice(
    const ProblemData& data, const Node& node, const ChoiceSet& set,
    const std::string& place);

}  // namespace shardprop
