// `UpdateCost` is the cost per element of one optimizer step on a trained
// parameter. One kernel updates many parameters in f32 arithmetic; the learning
// rate and the bias corrections are scalars.
//
//   sgd    p -= lr g                         reads p, g; writes p
//          2 flops: one product, one difference
//   adamw  p -= lr wd p                      2
//          m  = b1 m + (1 - b1) g            3
//          v  = b2 v + (1 - b2) g g          4
//          d  = sqrt(v / c2) + eps           3
//          p -= (lr / c1) m / d              3
//          reads p, g, m, v; writes p, m, v
#pragma once

#include <shardprop/mesh/topology.h>

#include <cstdint>

namespace shardprop {

struct UpdateCost {
  double passes = 0;  // tensors of the parameter's size, read or written
  double flops = 0;   // per element
};

inline constexpr UpdateCost kSgdUpdate{.passes = 3, .flops = 2};
inline constexpr UpdateCost kAdamWUpdate{.passes = 7, .flops = 15};

// The number of parameters that one kernel of an optimizer updates. AdamW passes
// four lists of tensors, for which PyTorch's kernels take 36 tensors each
// (depth_to_max_tensors in ATen/native/cuda/MultiTensorApply.cuh).
inline constexpr double kParametersPerUpdateKernel = 36;

// Returns the time that the update of one parameter adds to a step: its work at
// the rates of the device, and its share of the launch of a kernel.
std::int64_t update_nanoseconds(const Topology& topology, double flops,
                                double bytes);

}  // namespace shardprop
