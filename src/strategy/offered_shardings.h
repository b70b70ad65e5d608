// Finds the factor shardings that the layouts of operands have.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/placement/layout.h>
#include <shardprop/strategy/op_strategy.h>

#include <span>
#include <vector>

namespace shardprop {

// Returns the shardings of factors in `given`, one layout per operand, that are
// not in mesh order and that the factors accept. A strategy with these
// shardings leaves the operands where they are. The result is empty if all
// layouts are in mesh order. `operands` are the inputs or the outputs of the
// space.
//
//   relu a->a, S(0)@1,S(0)@0      factor a: S(0)@1,S(0)@0
//   view (ab)c->abc {a=2,b=6}, SS(0,2) on [3]
//                                 nothing, because b has S(0)
std::vector<OfferedSharding> offered_shardings(
    const IndexSpace& space, const DeviceMesh& mesh,
    std::span<const Operand> operands, std::span<const Layout> given);

// Returns the shardings that the factors of an operand have if it has this
// layout. Factors of other operands are not sharded. If a mesh dim divides two
// factors of a dim, the factors of the dim are not sharded. Partials are
// ignored.
//
//   view (ab)c->abc {a=2,b=6}, SS(0,2) on [3]      S(1): b has S(0)
FactorShardings implied_shardings(const IndexSpace& space,
                                  const DeviceMesh& mesh,
                                  const Operand& operand, const Layout& layout);

}  // namespace shardprop
