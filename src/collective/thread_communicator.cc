#include "collective/thread_communicator.h"

#include <shardprop/base/error.h>

#include "base/try.h"
#include "collective/call_check.h"

#include <exception>
#include <new>
#include <utility>

namespace shardprop::collective {
namespace {

class ThreadWork final : public Work {
 public:
  ThreadWork(const Communicator& communicator, std::shared_ptr<ThreadHub> hub,
             std::shared_ptr<ThreadChannel> channel,
             std::shared_ptr<ThreadOp> op, std::size_t index)
      : timeout_(communicator.timeout()),
        hub_(std::move(hub)),
        channel_(std::move(channel)),
        op_(std::move(op)),
        index_(index) {}
  ~ThreadWork() override {
    if (!op_->over()) channel_->drop(*op_, index_);
  }

  bool is_done() override { return channel_->advance(*op_, index_); }
  Result<void> wait() override {
    return channel_->wait(*op_, index_, timeout_);
  }

 private:
  std::chrono::milliseconds timeout_;
  std::shared_ptr<ThreadHub> hub_;  // which the channel refers to
  std::shared_ptr<ThreadChannel> channel_;
  std::shared_ptr<ThreadOp> op_;
  std::size_t index_;
};

}  // namespace

ThreadCommunicator::ThreadCommunicator(std::int64_t rank,
                                       std::shared_ptr<ThreadHub> hub,
                                       std::shared_ptr<DeviceQueue> queue)
    : Communicator(rank, hub->size(), Engine::kThreads, hub->options()),
      hub_(std::move(hub)),
      queue_(std::move(queue)),
      exceptions_(std::uncaught_exceptions()) {}

ThreadCommunicator::~ThreadCommunicator() {
  const bool thrown = std::uncaught_exceptions() > exceptions_;
  const char* const how = thrown ? "threw and left" : "left";
  try {
    hub_->leave(rank(), how);
  } catch (const std::bad_alloc&) {
    hub_->open_reserve();
    try {
      hub_->leave(rank(), how);
    } catch (const std::bad_alloc&) {
      // Ranks that wait for this one end at their timeout.
    }
  }
}

MemoryOps& ThreadCommunicator::memory_ops() {
  return queue_ == nullptr ? host_memory_ops() : *queue_;
}

void ThreadCommunicator::abort(const Error& reason) {
  hub_->open_reserve();
  // The text is short enough for the string's internal buffer, so it needs no
  // memory.
  Error failure{ErrorCode::kRankFailed, "a rank failed"};
  try {
    Error told = reason;
    told.code = ErrorCode::kRankFailed;
    told.message =
        "rank " + std::to_string(rank()) + " failed: " + reason.message;
    failure = std::move(told);
  } catch (const std::bad_alloc&) {
    // The other ranks then get the shorter message.
  }
  hub_->fail(std::move(failure));
}

std::optional<Error> ThreadCommunicator::failure() {
  if (!hub_->failed()) return std::nullopt;
  return hub_->failure();
}

Result<std::shared_ptr<Work>> ThreadCommunicator::do_start(
    const Group& group, Group::Place place, CollectiveCall call) {
  const Device device = memory_ops().device();
  if (!all_on(call, device)) {
    return shardprop::fail(
        Error{ErrorCode::kCollectiveDevice,
              "these threads exchange memory of " + to_string(device) + " only",
              call.where});
  }
  auto found = seats_.find(group);
  if (found == seats_.end()) {
    // The channel is created first, because this may throw and a seat needs a
    // channel.
    auto channel = hub_->channel(group, place.list);
    found = seats_
                .emplace(group, Seat{std::move(channel),
                                     static_cast<std::size_t>(place.index)})
                .first;
  }
  const Seat& seat = found->second;
  MemberQueue queue{queue_, nullptr};
  if (queue_ != nullptr) {
    SP_ASSIGN(queue.ready, queue_->mark());
  }
  SP_ASSIGN(
      std::shared_ptr<ThreadOp> op,
      seat.channel->publish(seat.index, std::move(call), std::move(queue)));
  return std::make_shared<ThreadWork>(*this, hub_, seat.channel, std::move(op),
                                      seat.index);
}

void ThreadCommunicator::add_engine_stats(CommunicatorStats& stats) const {
  for (const auto& [group, seat] : seats_) {
    stats.parked += seat.channel->parked(seat.index);
  }
}

std::vector<std::unique_ptr<Communicator>> thread_ranks_on(
    std::vector<std::shared_ptr<DeviceQueue>> queues,
    const CommunicatorOptions& options) {
  const auto hub = std::make_shared<ThreadHub>(
      static_cast<std::int64_t>(queues.size()), options);
  std::vector<std::unique_ptr<Communicator>> ends;
  ends.reserve(queues.size());
  for (std::shared_ptr<DeviceQueue>& queue : queues) {
    ends.push_back(std::make_unique<ThreadCommunicator>(
        static_cast<std::int64_t>(ends.size()), hub, std::move(queue)));
  }
  return ends;
}

}  // namespace shardprop::collective
