// NcclCommunicator: one rank's end of a world of GPUs.
#pragma once

#include <shardprop/nccl/nccl_world.h>

#include "nccl/nccl_hub.h"

#include <memory>
#include <optional>

namespace shardprop::nccl {

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclHub> hub,
                   const CommunicatorOptions& options);

  Result<LocalTensor> allocate(const Dims& sizes, DType dtype) override;
  void abort(const Error& reason) override;
  std::optional<Error> failure() override;

 protected:
  Result<std::shared_ptr<Work>> do_start(const Group& group, Group::Place place,
                                         CollectiveCall call) override;
  void add_engine_stats(CommunicatorStats& stats) const override;

 private:
  std::shared_ptr<NcclHub> hub_;
};

// Of any table and device: a test's, say.
std::unique_ptr<Communicator> nccl_communicator_on(
    const NcclApi& api, std::unique_ptr<DeviceQueue> queue,
    std::unique_ptr<Communicator> bootstrap,
    const CommunicatorOptions& options);

}  // namespace shardprop::nccl
