#include "collective/thread_communicator.h"

#include <shardprop/base/error.h>

#include "base/try.h"
#include "collective/call_check.h"

#include <exception>
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
                                       std::shared_ptr<ThreadHub> hub)
    : Communicator(rank, hub->size(), Engine::kThreads, hub->options()),
      hub_(std::move(hub)),
      exceptions_(std::uncaught_exceptions()) {}

ThreadCommunicator::~ThreadCommunicator() {
  const bool thrown = std::uncaught_exceptions() > exceptions_;
  hub_->leave(rank(), thrown ? "threw and left" : "left");
}

void ThreadCommunicator::abort(const Error& reason) {
  Error failure = reason;
  failure.code = ErrorCode::kRankFailed;
  failure.message =
      "rank " + std::to_string(rank()) + " failed: " + reason.message;
  hub_->fail(std::move(failure));
}

std::optional<Error> ThreadCommunicator::failure() {
  if (!hub_->failed()) return std::nullopt;
  return hub_->failure();
}

Result<std::shared_ptr<Work>> ThreadCommunicator::do_start(
    const Group& group, Group::Place place, CollectiveCall call) {
  if (!all_on(call, Device{})) {
    return shardprop::fail(Error{ErrorCode::kCollectiveDevice,
                                 "threads exchange host memory only",
                                 call.where});
  }
  Seat& seat = seats_[group];
  if (seat.channel == nullptr) {
    seat = {hub_->channel(group, place.list),
            static_cast<std::size_t>(place.index)};
  }
  SP_ASSIGN(std::shared_ptr<ThreadOp> op,
            seat.channel->publish(seat.index, std::move(call)));
  return std::make_shared<ThreadWork>(*this, hub_, seat.channel, std::move(op),
                                      seat.index);
}

void ThreadCommunicator::add_engine_stats(CommunicatorStats& stats) const {
  for (const auto& [group, seat] : seats_) {
    stats.parked += seat.channel->parked(seat.index);
  }
}

}  // namespace shardprop::collective
