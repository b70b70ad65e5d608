// Lists the factor shardings that an assignment may have besides mesh order.
#pragma once

#include "strategy/carried_factors.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/strategy/op_strategy.h>

#include <span>
#include <vector>

namespace shardprop {

// Returns FactorShardings::of_all() for each combination of `offered` shardings
// that factors of the assignment accept, except the one with all factors in
// mesh order. A sharding suits a factor that is given exactly its mesh dims.
//
//   mesh [2,2], both mesh dims given to factor 1, S(0)@1,S(0)@0 is offered:
//     S(1)@1,S(1)@0
std::vector<Layout> sharding_choices(const IndexSpace& space,
                                     const DeviceMesh& mesh,
                                     const std::vector<Carried>& carried,
                                     const Assignment& assignment,
                                     std::span<const OfferedSharding> offered);

// Returns whether every factor accepts its sharding. Precondition: not
// shardings.is_mesh_order().
bool accept(const IndexSpace& space, const DeviceMesh& mesh,
            const std::vector<Carried>& carried,
            const FactorShardings& shardings);

}  // namespace shardprop
