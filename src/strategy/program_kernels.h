// The kernels of a local program, and the bytes that each reads and writes.
//
//   native_layer_norm f32[256,4096], its last dim cut:
//     kEachStep             11, one for each step that is not a view
//     kBetweenCollectives   3: the sum, the sum of squares, the result
#pragma once

#include <shardprop/mesh/topology.h>
#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/op_cost.h>

#include <cstdint>
#include <vector>

namespace shardprop {

// Which steps of a program run in one kernel.
enum class StepFusion : std::uint8_t { kEachStep, kBetweenCollectives };

// The bytes of each kernel, in order; all 0 where the sizes inside the program
// are not known (Decomposition::per_rank). Precondition: the strategy needs a
// program.
//
// With kBetweenCollectives, what is made point by point is not written for
// later kernels: they make it again from what it was made of.
std::vector<double> program_kernels(const LocalContext& context,
                                    StepFusion fusion);

// What they take, each a launch at least.
std::int64_t kernels_nanoseconds(const Topology& topology,
                                 const std::vector<double>& bytes);

// As in op_cost.h, of an operator whose program fuses so.
std::int64_t compute_nanoseconds(const LocalContext& context,
                                 const Topology& topology, InputStorage storage,
                                 StepFusion fusion);

}  // namespace shardprop
