// `ThreadCommunicator` is the communicator of one rank of a ThreadWorld.
#pragma once

#include "collective/device_queue.h"
#include "collective/thread_hub.h"

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace shardprop::collective {

class ThreadCommunicator final : public Communicator {
 public:
  // `queue` belongs to the device of all ranks' tensors; it is empty on the
  // host.
  ThreadCommunicator(std::int64_t rank, std::shared_ptr<ThreadHub> hub,
                     std::shared_ptr<DeviceQueue> queue = nullptr);
  ~ThreadCommunicator() override;

  MemoryOps& memory_ops() override;
  void abort(const Error& reason) override;
  std::optional<Error> failure() override;

 protected:
  Result<std::shared_ptr<Work>> do_start(const Group& group, Group::Place place,
                                         CollectiveCall call) override;
  void add_engine_stats(CommunicatorStats& stats) const override;

 private:
  struct Seat {
    std::shared_ptr<ThreadChannel> channel;
    std::size_t index = 0;
  };

  std::shared_ptr<ThreadHub> hub_;
  std::shared_ptr<DeviceQueue> queue_;
  std::unordered_map<Group, Seat> seats_;
  int exceptions_;  // in flight when this was made
};

// Returns the communicators of a new world, one per queue. Its tensors are on
// the device of all `queues`.
std::vector<std::unique_ptr<Communicator>> thread_ranks_on(
    std::vector<std::shared_ptr<DeviceQueue>> queues,
    const CommunicatorOptions& options);

}  // namespace shardprop::collective
