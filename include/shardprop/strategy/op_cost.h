// What one strategy of one operator takes on the busiest rank: a roofline for
// what it computes, and the collectives inside its local program. Moving its
// inputs there is not part of it.
//
//   mm bf16[8192,8192] x bf16[8192,8192], S(0),R->S(0) on [8], dgx-h100:
//     compute_nanoseconds(context, topology)    // 199 us of arithmetic
#pragma once

#include <shardprop/mesh/topology.h>
#include <shardprop/redistribute/collective_step.h>
#include <shardprop/strategy/local_context.h>

#include <cstdint>
#include <vector>

namespace shardprop {

// The collectives of the local program, in order.
std::vector<CollectiveStep> collectives_inside(const LocalContext& context,
                                               const Topology& topology);

// Time of the kernels. Operands are counted at the size of the largest local
// tensor; views are free.
std::int64_t compute_nanoseconds(const LocalContext& context,
                                 const Topology& topology);

}  // namespace shardprop
