// Computes the kernels of a local program and the bytes that each kernel reads
// and writes.
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

// StepFusion selects the steps of a program that run in one kernel.
enum class StepFusion : std::uint8_t { kEachStep, kBetweenCollectives };

// Returns the bytes of each kernel, in order. All are 0 if the sizes inside the
// program are unknown (Decomposition::per_rank). Precondition: the strategy
// needs a program.
//
// With kBetweenCollectives, pointwise results are not written for later
// kernels. These kernels compute them again from the operands.
std::vector<double> program_kernels(const LocalContext& context,
                                    StepFusion fusion);

// Returns the time of the kernels; each takes at least one launch.
std::int64_t kernels_nanoseconds(const Topology& topology,
                                 const std::vector<double>& bytes);

// Like compute_nanoseconds() of op_cost.h, for an operator whose program fuses
// steps this way.
std::int64_t compute_nanoseconds(const LocalContext& context,
                                 const Topology& topology, InputStorage storage,
                                 StepFusion fusion);

}  // namespace shardprop
