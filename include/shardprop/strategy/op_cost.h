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

#include <compare>
#include <cstdint>
#include <vector>

namespace shardprop {

// The collectives of the local program, in order.
std::vector<CollectiveStep> collectives_inside(const LocalContext& context,
                                               const Topology& topology);
std::vector<CollectiveStep> collectives_inside(const LocalProgram& program,
                                               const DeviceMesh& mesh,
                                               const Topology& topology);

// Whether the storage of an input that is written into
// (IndexSpace::writes_into) becomes the result's, or is needed as it was: then
// all of it is copied.
enum class InputStorage : std::uint8_t { kTakenOver, kKept };

// What one operator does in a kernel that it shares with others.
struct KernelPart {
  bool launches = false;  // of the kernel's operators, it pays the launch
  // By input: the share of its bytes that are read for it; the rest is in the
  // kernel already.
  std::vector<double> reads;
  std::vector<bool> writes;  // by output: taken outside the kernel
  friend auto operator<=>(const KernelPart&, const KernelPart&) = default;
};

// Its part of the kernel's time: launch + bytes / rate. Where its local program
// has more than the operator, that is kernels of its own between collectives.
std::int64_t compute_nanoseconds(const LocalContext& context,
                                 const Topology& topology,
                                 const KernelPart& part);

// What a kernel takes beside its launch: bytes read plus written.
std::int64_t traffic_nanoseconds(const Topology& topology, double bytes);
std::int64_t launch_nanoseconds(const Topology& topology);

// Time of the kernels. Operands are counted at the size of the largest local
// tensor; views are free.
std::int64_t compute_nanoseconds(
    const LocalContext& context, const Topology& topology,
    InputStorage storage = InputStorage::kTakenOver);

}  // namespace shardprop
