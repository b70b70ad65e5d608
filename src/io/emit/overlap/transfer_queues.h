// `transfer_queues()` groups the overlapped steps of a program, and places their
// transfers between issue and wait.
//
// A PyTorch program waits for a transfer before it starts one that reads its
// result. So the second transfer of a queue starts while other steps run:
//
//   reduce_scatter, 30 us, and all_reduce, 10 us, next to 8 steps
//   0 start reduce_scatter     6 wait for it, start all_reduce     8 wait for it
#pragma once

#include <shardprop/program/spmd_program.h>

#include <cstddef>
#include <map>
#include <vector>

namespace shardprop::emit {

// A queue has the overlapped steps of a copy, and of the copies that are made
// from it while it is in flight. It is named by its first copy.
struct TransferQueues {
  std::map<std::size_t, std::size_t> of_copy;
  std::map<ProgramValueId, std::size_t> of_value;  // values of overlapped steps
  // By index of a step: the queues whose next transfer starts before it. The
  // first transfer of a queue starts when it is issued.
  std::map<std::size_t, std::vector<std::size_t>> later_starts;
};

TransferQueues transfer_queues(const SpmdProgram& program);

}  // namespace shardprop::emit
