// `NcclCommunicator` is the communicator of one rank in a world of GPUs.
#pragma once

#include <shardprop/nccl/nccl_world.h>

#include "collective/staged_communicator.h"
#include "nccl/nccl_hub.h"

#include <memory>

namespace shardprop::nccl {

class NcclCommunicator final : public collective::StagedCommunicator<NcclHub> {
 public:
  NcclCommunicator(const std::shared_ptr<NcclHub>& hub,
                   const CommunicatorOptions& options);

  MemoryOps& memory_ops() override;
  void abort(const Error& reason) override;

 protected:
  Result<std::shared_ptr<Work>> do_start(const Group& group, Group::Place place,
                                         CollectiveCall call) override;
};

// Creates a communicator on any function table and device queue, such as those
// of a test.
std::unique_ptr<Communicator> nccl_communicator_on(
    const NcclApi& api, std::unique_ptr<DeviceQueue> queue,
    std::unique_ptr<Communicator> bootstrap,
    const CommunicatorOptions& options);

}  // namespace shardprop::nccl
