// strategy_of(): from what each mesh dim is given to, to the layouts of every
// operand.
//
//   mm f32[16,8], f32[8,4] on [2], the mesh dim given to factor m:
//     S(0),R->S(0)
#pragma once

#include <shardprop/strategy/op_strategy.h>

#include <optional>

namespace shardprop {

// The strategy that an assignment stands for, and the layouts that follow;
// nothing where it is not valid. Preconditions: one entry per mesh dim, each
// unassigned, a factor that may be sharded or a linearity of `space`;
// op.outputs is filled in.
std::optional<PlacementStrategy> strategy_of(
    const OpSchema& op, const IndexSpace& space, const DeviceMesh& mesh,
    const Assignment& assignment, LayoutTable& layouts,
    const StrategyOptions& options = {});

}  // namespace shardprop
