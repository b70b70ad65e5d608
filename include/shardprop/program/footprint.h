// What a program sends and holds, read off its steps: what a plan predicts of
// it must come out the same.
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

struct ProgramTraffic {
  // Steps by CollectiveKind, slices included.
  std::array<std::int64_t, std::size(kAllCollectiveKinds)> collectives{};
  std::int64_t bytes_per_rank = 0;  // of the busiest rank of each, summed
  friend bool operator==(const ProgramTraffic&,
                         const ProgramTraffic&) = default;
};

ProgramTraffic traffic(const SpmdProgram& program);

// Bytes that the busiest rank holds while each node runs, the copies that are
// made before it included: inputs and optimizer state throughout, results and
// copies from their making until they are freed, each memory once however it is
// viewed, and what a redistribution takes while it runs. What is made inside a
// node, or to draw numbers or update a parameter, is not counted.
std::vector<std::int64_t> live_bytes(const SpmdProgram& program);

}  // namespace shardprop
