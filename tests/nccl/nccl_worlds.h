// Ranks as threads, each with an NCCL communicator over the fake.
#pragma once

#include <shardprop/collective/communicator.h>

#include <functional>
#include <vector>

namespace shardprop::testing {

// Whose memory tensors are in: the host's, or what is called a device's.
std::vector<Result<void>> run_nccl_ranks(
    std::int64_t ranks, const CommunicatorOptions& options,
    const std::function<Result<void>(Communicator&)>& body, Device device = {});

}  // namespace shardprop::testing
