// This header computes the cost of one strategy of one operator on the busiest
// rank, in nanoseconds. The cost is a roofline for the computation plus the
// collectives inside the local program. It does not include redistributing the
// inputs.
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

// Returns the collectives of the local program, in order.
std::vector<CollectiveStep> collectives_inside(const LocalContext& context,
                                               const Topology& topology);
std::vector<CollectiveStep> collectives_inside(const LocalProgram& program,
                                               const DeviceMesh& mesh,
                                               const Topology& topology);

// `InputStorage` says what happens to the buffer of an input that is written
// into (IndexSpace::writes_into). It becomes the result's buffer (kTakenOver),
// or it is still needed and is copied in full (kKept).
enum class InputStorage : std::uint8_t { kTakenOver, kKept };

// `KernelPart` is the part of one operator in a kernel that several operators
// share.
struct KernelPart {
  bool launches = false;  // this operator is charged the kernel's launch
  // By input: the fraction of its bytes that is read for this operator. The
  // kernel has the rest already.
  std::vector<double> reads;
  std::vector<bool> writes;  // by output: it is read outside the kernel
  friend auto operator<=>(const KernelPart&, const KernelPart&) = default;
};

// Returns the operator's part of the kernel's time: launch + bytes / rate. If
// its local program has more than the operator, it counts as separate kernels
// between collectives.
std::int64_t compute_nanoseconds(const LocalContext& context,
                                 const Topology& topology,
                                 const KernelPart& part);

// Returns the time of a kernel without its launch; `bytes` are read plus
// written.
std::int64_t traffic_nanoseconds(const Topology& topology, double bytes);
// Returns the launch time of a kernel.
std::int64_t launch_nanoseconds(const Topology& topology);
// Returns the ramp of a kernel (Topology::ramp_us).
std::int64_t ramp_nanoseconds(const Topology& topology);

// Returns the time of the operator's kernels. Operands have the size of the
// largest local tensor; views are free.
std::int64_t compute_nanoseconds(
    const LocalContext& context, const Topology& topology,
    InputStorage storage = InputStorage::kTakenOver);

}  // namespace shardprop
