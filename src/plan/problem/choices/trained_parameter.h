// trained_parameter() lists the choices of a parameter that an optimizer
// trains.
#pragma once

#include "plan/problem/problem_data.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {

// `TrainedLayouts` lists the layouts that a parameter and its state may have.
struct TrainedLayouts {
  std::vector<LayoutId> own;
  std::vector<LayoutId> states;
};

// The parameter has one of `layouts.own`. Its gradient and the optimizer's state
// have one of `layouts.states`: the same layout or smaller shards. With smaller shards, the parameter is
// gathered after its update. `ties` lists its gradient and its update among the
// outputs. A choice costs the optimizer's step and that gather. With several
// micro-batches a step, each choice occurs twice: with the gradient reduced in
// each micro-batch, and once a step. Error: kStopped.
Result<std::shared_ptr<const ChoiceSet>> trained_parameter(
    const ProblemData& data, ValueId parameter,
    const std::vector<GraphOutput>& ties, const TrainedLayouts& layouts);

// Returns a number other than 0. It is equal for parameters whose choices cost
// the same for equal layouts and ties.
std::uint32_t class_of_trained(const ProblemData& data, ValueId parameter);

}  // namespace shardprop
