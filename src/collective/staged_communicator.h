// `StagedCommunicator` is one rank's communicator in a world that sends
// messages. An engine adds how calls start and how other ranks learn of
// failures.
#pragma once

#include <shardprop/collective/communicator.h>

#include "collective/staged_hub.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace shardprop::collective {

class StagedWork final : public Work {
 public:
  StagedWork(std::shared_ptr<StagedHub> hub, std::shared_ptr<StagedOp> op,
             std::chrono::milliseconds timeout)
      : hub_(std::move(hub)), op_(std::move(op)), timeout_(timeout) {}
  ~StagedWork() override { op_->dropped = true; }

  bool is_done() override {
    if (!op_->over()) hub_->progress();
    return op_->over();
  }
  Result<void> wait() override { return hub_->wait(*op_, timeout_); }

 private:
  std::shared_ptr<StagedHub> hub_;
  std::shared_ptr<StagedOp> op_;
  std::chrono::milliseconds timeout_;
};

// `Hub` is a StagedHub.
template <class Hub>
class StagedCommunicator : public Communicator {
 public:
  std::optional<Error> failure() final {
    hub_->progress();
    return hub_->failure();
  }

 protected:
  StagedCommunicator(std::int64_t rank, std::int64_t size, Engine engine,
                     const CommunicatorOptions& options,
                     std::shared_ptr<Hub> hub)
      : Communicator(rank, size, engine, options), hub_(std::move(hub)) {}

  Hub& hub() const { return *hub_; }
  // Posts a call. If that throws, part of the call may be in flight, so the
  // world fails.
  template <class Post>
  Result<void> posted(const Post& post) const {
    try {
      return post();
    } catch (...) {
      hub_->fail({ErrorCode::kRankFailed, "a rank threw in a collective"},
                 true);
      throw;
    }
  }
  std::shared_ptr<Work> work_of(std::shared_ptr<StagedOp> op) const {
    return std::make_shared<StagedWork>(hub_, std::move(op), timeout());
  }
  void add_engine_stats(CommunicatorStats& stats) const final {
    hub_->add_stats(stats);
  }

 private:
  std::shared_ptr<Hub> hub_;
};

}  // namespace shardprop::collective
