// This header derives traffic and memory of a program from its steps. The
// plan's predictions must equal these figures.
//
//   traffic(program).collectives[all_gather]      12
//   live_bytes(program)[17]                       bytes while node 17 runs
#pragma once

#include <shardprop/mesh/collective_kind.h>
#include <shardprop/program/spmd_program.h>

#include <array>
#include <cstdint>
#include <vector>

namespace shardprop {

// `ProgramTraffic` is the collectives of a program and their bytes.
struct ProgramTraffic {
  // Number of steps by CollectiveKind, including slices.
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> collectives{};
  // Sum over steps of the busiest rank's bytes.
  std::int64_t bytes_per_rank = 0;
  friend bool operator==(const ProgramTraffic&,
                         const ProgramTraffic&) = default;
};

// Returns the traffic of all steps.
ProgramTraffic traffic(const SpmdProgram& program);

// Returns the bytes that the busiest rank holds while each node runs, including
// the copies that are produced before it. They are the sum of:
//
// 1. inputs and optimizer state, at all times;
// 2. results and copies, until they are freed, and views count once;
// 3. temporary memory of a redistribution, while it runs: the largest of those
//    in line at the node, and the largest of those in flight.
//
// Memory inside a node, for random numbers, or for the update of a parameter
// does not count.
std::vector<std::int64_t> live_bytes(const SpmdProgram& program);

}  // namespace shardprop
