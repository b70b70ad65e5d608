// `StagedHub` is the state that a communicator and its operations share, for
// any engine that sends messages. It has the pending operations and the
// permanent failure.
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
  // Advances all pending operations and receives failures of other ranks. Never
  // blocks.
  virtual void progress() = 0;
  // Waits until the operation is over, or until the timeout. Precondition: the
  // operation was given to add().
  virtual Result<void> wait(StagedOp& op,
                            std::chrono::milliseconds timeout) = 0;

  const std::optional<Error>& failure() const { return failure_; }
  // Stops this rank permanently; with `tell`, informs all other ranks. The
  // first failure wins.
  void fail(Error failure, bool tell);

  void add_stats(CommunicatorStats& stats) const;

 protected:
  bool all_over() const { return pending_.empty(); }
  // Advances the pending operations.
  void advance_pending();
  // Returns the result, on this rank, of an operation that is over.
  static Result<void> ending(const StagedOp& op, std::int64_t rank);

 private:
  // Stops the engine after failure() has been set.
  virtual void stop(bool tell) = 0;

  std::vector<std::shared_ptr<StagedOp>> pending_;
  std::optional<Error> failure_;
  std::int64_t abandoned_ = 0;
  std::int64_t abandoned_bytes_ = 0;
};

}  // namespace shardprop::collective
