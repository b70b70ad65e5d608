// `cuda_thread_ranks` makes ranks that are threads of one process and share one
// GPU. Programs of several ranks can thus run on a single GPU, without NCCL.
//
//   auto ends = cuda_thread_ranks(4, 0);
//   if (!ends) return fail(ends.error());        // says what is missing
//   run_ranks(*std::move(ends), [](Communicator& communicator) {
//     auto x = communicator.allocate({1024}, DType::kBF16);   // on the GPU
//     return x.map([](const LocalTensor&) {});
//   });
//
// A rank's tensors become readable for others when its own stream reaches its
// call. Peers then copy and reduce them on their streams, in rank order, with
// the same bits as on the host. Ranks synchronise on the host before any work
// is queued, so a kernel never waits for another kernel. wait() returns when
// the GPU is done. Faults are those of thread_world.h.
#pragma once

#include <shardprop/collective/communicator.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {

// Returns the number of GPUs that this process sees, at least one. Error:
// kEngineMissing (no driver, no GPU, or a build without CUDA).
Result<int> cuda_device_count();

// Returns the endpoints of a new world, by rank; each is used and destroyed on
// its own thread. Precondition: ranks >= 1. Errors: kEngineMissing (as above,
// or no GPU with that number).
Result<std::vector<std::unique_ptr<Communicator>>> cuda_thread_ranks(
    std::int64_t ranks, int device, const CommunicatorOptions& options = {});

}  // namespace shardprop
