// The choices of a parameter that an optimizer trains.
#pragma once

#include "plan/problem_data.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {

// The parameter lies in one of `layouts`; its gradient and the optimizer's state
// lie as it does, or in smaller shards, and then the parameter is gathered after
// its update. `ties`: what the program hands back for it. A choice costs the
// optimizer's step and that gather. With several micro-batches a step, each
// stands twice: with the gradient reduced every time, and once a step. Error:
// kStopped.
Result<std::shared_ptr<const ChoiceSet>> trained_parameter(
    const ProblemData& data, ValueId parameter,
    const std::vector<GraphOutput>& ties, const std::vector<LayoutId>& layouts);

// Not 0; equal for parameters whose choices cost the same for equal layouts and
// ties.
std::uint32_t class_of_trained(const ProblemData& data,
                               ValueId parameter);

}  // namespace shardprop
