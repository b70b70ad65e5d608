// `NcclHub` is the state that an NCCL communicator and its operations share.
#pragma once

#include <shardprop/collective/communicator.h>

#include "collective/device_queue.h"
#include "collective/staged_hub.h"
#include "nccl/nccl_api.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardprop::nccl {

class NcclHub;
using collective::DeviceQueue;

// The help line of a timeout. Calls of two groups in opposite orders on two
// ranks wait for each other.
inline constexpr const char* kOneOrder =
    "make the calls of all groups in one order on all ranks: NCCL runs them "
    "one after another";

struct NcclGroup {
  Group group;  // the whole partition
  Group::Ranks ranks;
  std::int64_t index = 0;
  std::int64_t calls = 0;
  Comm comm = nullptr;
};

// `NcclOp` is one collective. Its stages follow one another on the stream, and
// the host does not wait between them.
class NcclOp final : public collective::StagedOp {
 public:
  NcclOp(NcclHub& hub, NcclGroup& group, CollectiveCall call);

  NcclGroup& group() const { return group_; }
  NcclHub& hub() const { return hub_; }
  // See NcclHub::checked().
  Result<void> checked(int code, const char* call) const;
  Result<void> send(std::int64_t peer, const LocalTensor& from) override;
  Result<void> receive(std::int64_t peer, const LocalTensor& into) override;

 protected:
  Result<void> open_posts() override;
  Result<void> close_posts() override;
  void discard_posts() noexcept override;
  Result<bool> through() override;
  bool busy() const override;
  void forget() override { mark_.reset(); }

 private:
  NcclHub& hub_;
  NcclGroup& group_;
  std::unique_ptr<DeviceQueue::Mark> mark_;
  bool done_ = false;
};

class NcclHub final : public collective::StagedHub {
 public:
  NcclHub(const NcclApi& api, std::unique_ptr<DeviceQueue> queue,
          std::unique_ptr<Communicator> bootstrap)
      : api_(api), queue_(std::move(queue)), bootstrap_(std::move(bootstrap)) {}
  ~NcclHub() override;

  const NcclApi& api() const { return api_; }
  DeviceQueue& queue() { return *queue_; }
  Communicator& bootstrap() { return *bootstrap_; }

  // Returns the communicator of a group. The first call sets it up, with all
  // members.
  Result<NcclGroup*> group(const Group& group, Group::Place place,
                           std::chrono::milliseconds timeout);
  void progress() override;
  Result<void> wait(collective::StagedOp& op,
                    std::chrono::milliseconds timeout) override;
  // Checks the code that a call of NCCL returned. `op` is the operation of the
  // group, or null during set-up. Errors: kEngine. If a peer is gone, this
  // function waits for the members and names the ones that do not answer. Only
  // in this case does progress() block.
  Result<void> checked(int code, const char* call, const Group& group,
                       const NcclOp* op);
  // True if the stream had no work left after all communicators were aborted.
  // Buffers may then be freed.
  bool is_drained() const { return drained_; }
  // Returns NCCL's state of a group. Errors: as checked().
  Result<int> state_of(const NcclGroup& group, const NcclOp* op);
  // Waits until NCCL has accepted all calls. Errors: kEngine, kTimeout.
  Result<void> settle(const NcclGroup& group, const NcclOp* op,
                      std::chrono::milliseconds timeout);

 private:
  bool poll(Clock::time_point deadline, const std::function<bool()>& done);
  // Receives failures of other ranks from the bootstrap.
  void hear();
  // Reports the failure by the bootstrap, aborts all communicators, and waits
  // at most a quarter of the timeout until the stream is done.
  void stop(bool tell) override;
  // Returns the error of an operation that has not ended in time.
  Error late(const NcclOp& op, std::chrono::milliseconds timeout);
  // True if all members of a group answer within a quarter of the timeout.
  Result<void> roll_call(const Group& group, const std::string& call,
                         std::chrono::milliseconds timeout);

  NcclApi api_;
  std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<Communicator> bootstrap_;
  std::unordered_map<Group, std::unique_ptr<NcclGroup>> groups_;
  // In the order of their set-up, which is the same on all ranks.
  std::vector<NcclGroup*> in_order_;
  bool drained_ = false;
};

}  // namespace shardprop::nccl
