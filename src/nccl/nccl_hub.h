// NcclHub: what an NCCL communicator and its operations share.
#pragma once

#include <shardprop/collective/communicator.h>

#include "collective/staged_op.h"
#include "nccl/device_queue.h"
#include "nccl/nccl_api.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace shardprop::nccl {

class NcclHub;

struct NcclGroup {
  Group group;  // the whole partition
  Group::Ranks ranks;
  std::int64_t index = 0;
  std::int64_t calls = 0;
  Comm comm = nullptr;
};

// One collective: its stages follow one another on the stream, without the host
// waiting in between.
class NcclOp final : public collective::StagedOp {
 public:
  NcclOp(NcclHub& hub, NcclGroup& group, CollectiveCall call)
      : StagedOp(group.ranks, group.index, group.calls++, std::move(call)),
        hub_(hub),
        group_(group) {}

  NcclGroup& group() const { return group_; }
  NcclHub& hub() const { return hub_; }
  Result<void> send(std::int64_t peer, const LocalTensor& from) override;
  Result<void> receive(std::int64_t peer, const LocalTensor& into) override;
  Result<void> copy(const LocalTensor& from, const LocalTensor& to) override;
  Result<void> reduce(ReduceOp op, std::span<const LocalTensor> terms,
                      const LocalTensor& out) override;

 protected:
  Result<LocalTensor> allocate(const Dims& sizes, DType dtype) override;
  Result<void> open_posts() override;
  Result<void> close_posts() override;
  Result<bool> through() override;
  bool busy() const override { return !done_; }
  void forget() override { mark_.reset(); }

 private:
  NcclHub& hub_;
  NcclGroup& group_;
  std::unique_ptr<DeviceQueue::Mark> mark_;
  bool done_ = false;
};

class NcclHub {
 public:
  using Clock = std::chrono::steady_clock;

  NcclHub(const NcclApi& api, std::unique_ptr<DeviceQueue> queue,
          std::unique_ptr<Communicator> bootstrap)
      : api_(api), queue_(std::move(queue)), bootstrap_(std::move(bootstrap)) {}
  ~NcclHub();
  NcclHub(const NcclHub&) = delete;
  NcclHub& operator=(const NcclHub&) = delete;

  const NcclApi& api() const { return api_; }
  DeviceQueue& queue() { return *queue_; }
  Communicator& bootstrap() { return *bootstrap_; }

  // Set up on first use, with all members.
  Result<NcclGroup*> group(const Group& group, Group::Place place,
                           std::chrono::milliseconds timeout);
  void add(const std::shared_ptr<NcclOp>& op) { pending_.push_back(op); }
  void progress();
  Result<void> wait(NcclOp& op, std::chrono::milliseconds timeout);
  // Until NCCL has taken in what it was asked. Errors: kEngine, kTimeout.
  Result<void> settle(Comm comm, std::chrono::milliseconds timeout);

  const std::optional<Error>& failure() const { return failure_; }
  // Stops this rank for good, and the others by the bootstrap; aborts all
  // communicators.
  void fail(Error failure, bool tell);
  void add_stats(CommunicatorStats& stats) const;

 private:
  bool poll(Clock::time_point deadline, const std::function<bool()>& done);
  // Who is missing, when an operation does not end.
  Error post_mortem(const NcclOp& op, std::chrono::milliseconds timeout);

  NcclApi api_;
  std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<Communicator> bootstrap_;
  std::unordered_map<Group, std::unique_ptr<NcclGroup>> groups_;
  std::vector<std::shared_ptr<NcclOp>> pending_;
  std::optional<Error> failure_;
  std::int64_t abandoned_ = 0;
  std::int64_t abandoned_bytes_ = 0;
};

}  // namespace shardprop::nccl
