// strategy_of() converts an assignment of mesh dims and the shardings of
// factors to the layouts of every operand.
//
//   mm f32[16,8], f32[8,4] on [2], the mesh dim given to factor m:
//     S(0),R->S(0)
#pragma once

#include <shardprop/strategy/op_strategy.h>

#include <optional>

namespace shardprop {

// Returns the strategy of an assignment and the layouts that follow. Returns
// nullopt if the assignment is not valid. Preconditions: the assignment has one
// entry per mesh dim. Each entry is unassigned, a shardable factor or a
// linearity of `space`. `shardings` has the mesh dims of the assignment.
// op.outputs is complete.
std::optional<PlacementStrategy> strategy_of(
    const OpSchema& op, const IndexSpace& space, const DeviceMesh& mesh,
    const Assignment& assignment, const FactorShardings& shardings,
    LayoutTable& layouts, const StrategyOptions& options = {});

}  // namespace shardprop
