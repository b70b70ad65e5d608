// Runs ranks as threads, each with an NCCL communicator over the fake library.
#pragma once

#include <shardprop/collective/communicator.h>

#include <functional>
#include <memory>
#include <vector>

namespace shardprop::testing {

// A device whose memory the host cannot touch (fake_memory.h).
inline constexpr Device kFakeDevice{DeviceType::kCuda, 0};

// Tensors are in memory of `device`: the host's or the fake device's.
std::vector<Result<void>> run_nccl_ranks(
    std::int64_t ranks, const CommunicatorOptions& options,
    const std::function<Result<void>(Communicator&)>& body, Device device = {});

// The ends of a world of threads that share the fake device.
std::vector<std::unique_ptr<Communicator>> sharing_ranks(
    std::int64_t ranks, const CommunicatorOptions& options);

}  // namespace shardprop::testing
