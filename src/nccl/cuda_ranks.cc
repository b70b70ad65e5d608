#include <shardprop/nccl/cuda_ranks.h>

#include "base/try.h"
#include "collective/thread_communicator.h"
#include "nccl/cuda_queue.h"

#include <utility>

namespace shardprop {

Result<int> cuda_device_count() { return nccl::cuda_devices(); }

Result<std::vector<std::unique_ptr<Communicator>>> cuda_thread_ranks(
    std::int64_t ranks, int device, const CommunicatorOptions& options) {
  std::vector<std::shared_ptr<collective::DeviceQueue>> queues;
  for (std::int64_t r = 0; r < ranks; ++r) {
    SP_ASSIGN(std::shared_ptr<collective::DeviceQueue> queue,
              nccl::cuda_queue(device));
    queues.push_back(std::move(queue));
  }
  return collective::thread_ranks_on(std::move(queues), options);
}

}  // namespace shardprop
