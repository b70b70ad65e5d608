// `program_time` derives the time of a program from its steps alone. The plan's
// objective must equal it.
//
//   window       steps                                      time, us
//   layer 1      start all_gather (40), mm (30), wait       40
//   layer 2      mm (30), all_reduce in line (5)            35
#pragma once

#include <shardprop/program/spmd_program.h>

#include <cstdint>
#include <vector>

namespace shardprop {

// `ProgramPrices` is the time of the steps that have none in the program, in
// nanoseconds. Collectives have their own.
struct ProgramPrices {
  std::vector<std::int64_t> nodes;  // by SpmdProgram::nodes: compute
  // By SpmdProgram::copies: the kernel boundary at the copy. Empty: 0.
  std::vector<std::int64_t> copies;
  // By SpmdProgram::copies: the part of the transfers that may overlap compute.
  // The program waits for the rest before it goes on. Empty: everything.
  std::vector<std::int64_t> overlappable;
  // A step of several micro-batches runs the program once in each. All times are
  // then the share of one micro-batch. If it is 1, all micro-batches are alike.
  std::int64_t micro_batches = 1;
  // By SpmdProgram::copies: whether its transfers run in the last micro-batch of
  // a step alone. An empty list means that none does.
  std::vector<bool> once_a_step;
};

// Returns the time at which the last step ends, in nanoseconds. If there are
// several micro-batches, it is the mean time of one.
//
// * Nodes run one after another. Overlapped steps run next to them, one after
// another in the order of their start.
// * A wait lasts until its values are complete.
// * A collective in line stops both.
//
// Precondition: `prices.nodes` has an entry for every node.
std::int64_t program_time(const SpmdProgram& program,
                          const ProgramPrices& prices);

}  // namespace shardprop
