// Ranks that are threads of one process and share one GPU: to try programs of
// several ranks where there is a single GPU, without NCCL.
//
//   auto ends = cuda_thread_ranks(4, 0);
//   if (!ends) return fail(ends.error());        // says what is missing
//   run_ranks(*std::move(ends), [](Communicator& communicator) {
//     auto x = communicator.allocate({1024}, DType::kBF16);   // on the GPU
//     return x.map([](const LocalTensor&) {});
//   });
//
// A rank's tensors are ready for others when its own stream has got to its
// call; peers copy and reduce them on their streams behind that, in rank order,
// with the same bits as on the host. Ranks meet on the host before anything is
// queued, so that no kernel ever waits for another one. wait() returns when the
// GPU is done. Faults are those of thread_world.h.
#pragma once

#include <shardprop/collective/communicator.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {

// How many GPUs this process sees, at least one. Error: kEngineMissing (no
// driver, no GPU, a build without CUDA).
Result<int> cuda_device_count();

// The ends of a new world, by rank; each is used and destroyed on a thread of
// its own. Precondition: ranks >= 1. Errors: kEngineMissing (as above, or no
// GPU of that number).
Result<std::vector<std::unique_ptr<Communicator>>> cuda_thread_ranks(
    std::int64_t ranks, int device, const CommunicatorOptions& options = {});

}  // namespace shardprop
