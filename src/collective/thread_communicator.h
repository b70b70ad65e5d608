// ThreadCommunicator: one rank's end of a ThreadWorld.
#pragma once

#include "collective/thread_hub.h"

#include <memory>
#include <optional>
#include <unordered_map>

namespace shardprop::collective {

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::int64_t rank, std::shared_ptr<ThreadHub> hub);
  ~ThreadCommunicator() override;

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
  std::unordered_map<Group, Seat> seats_;
  int exceptions_;  // in flight when this was made
};

}  // namespace shardprop::collective
