// The communicator over this process's GPU: by MPI the processes find each other.
#pragma once

#include <shardprop/mpi/mpi_world.h>
#include <shardprop/nccl/cuda_ranks.h>
#include <shardprop/nccl/nccl_world.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace shardprop::testing {

// Ranks that are more than the GPUs share them: NCCL allows that where each says
// it is another machine.
inline Result<std::unique_ptr<Communicator>> gpu_of_this_rank(
    const CommunicatorOptions& options = {}) {
  const Result<int> devices = cuda_device_count();
  if (!devices) return fail(devices.error());
  auto bootstrap = mpi_communicator({.common = options});
  if (!bootstrap) return fail(bootstrap.error());
  const std::int64_t rank = (*bootstrap)->rank();
  if ((*bootstrap)->size() > *devices) {
    setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1);
  }
  return nccl_communicator(
      *std::move(bootstrap),
      {.common = options, .device = static_cast<int>(rank % *devices)});
}

}  // namespace shardprop::testing
