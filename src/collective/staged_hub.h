// StagedHub: what a communicator that sends messages and its operations share,
// whatever the engine: what is under way, and the failure that stays.
#pragma once

#include <shardprop/collective/communicator.h>

#include "collective/staged_op.h"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace shardprop::collective {

class StagedHub {
 public:
  using Clock = std::chrono::steady_clock;

  StagedHub() = default;
  StagedHub(const StagedHub&) = delete;
  StagedHub& operator=(const StagedHub&) = delete;
  virtual ~StagedHub() = default;

  // Keeps the operation until it is over.
  void add(std::shared_ptr<StagedOp> op) { pending_.push_back(std::move(op)); }
  // Moves everything along that is under way, and hears what others say; never
  // blocks.
  virtual void progress() = 0;
  // Until the operation, one of add(), is over, or the timeout.
  virtual Result<void> wait(StagedOp& op,
                            std::chrono::milliseconds timeout) = 0;

  const std::optional<Error>& failure() const { return failure_; }
  // Stops this rank for good; `tell` all others. The first failure wins.
  void fail(Error failure, bool tell);

  void add_stats(CommunicatorStats& stats) const;

 protected:
  bool all_over() const { return pending_.empty(); }
  // progress() of what is under way.
  void advance_pending();
  // What an operation that is over comes to, on this rank.
  static Result<void> ending(const StagedOp& op, std::int64_t rank);

 private:
  // Of the engine, when failure() has been set.
  virtual void stop(bool tell) = 0;

  std::vector<std::shared_ptr<StagedOp>> pending_;
  std::optional<Error> failure_;
  std::int64_t abandoned_ = 0;
  std::int64_t abandoned_bytes_ = 0;
};

}  // namespace shardprop::collective
