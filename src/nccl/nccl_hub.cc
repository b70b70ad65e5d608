#include "nccl/nccl_hub.h"

#include <shardprop/base/error.h>

#include "base/try.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace shardprop::nccl {
namespace {

using namespace std::chrono_literals;

constexpr auto kNap = 20us;
constexpr const char* kSetUp = "set-up of NCCL";

}  // namespace

NcclOp::NcclOp(NcclHub& hub, NcclGroup& group, CollectiveCall call)
    : StagedOp(group.ranks, group.index, group.calls++, std::move(call),
               hub.queue()),
      hub_(hub),
      group_(group) {}

Result<void> NcclOp::checked(int code, const char* call) const {
  return hub_.checked(code, call, group_.group, this);
}

Result<void> NcclOp::send(std::int64_t peer, const LocalTensor& from) {
  if (from.numel() == 0) return {};
  return checked(
      hub_.api().send(from.data(), static_cast<std::size_t>(from.bytes()),
                      kNcclUint8, static_cast<int>(peer), group_.comm,
                      hub_.queue().stream()),
      "ncclSend");
}

Result<void> NcclOp::receive(std::int64_t peer, const LocalTensor& into) {
  if (into.numel() == 0) return {};
  return checked(
      hub_.api().recv(into.data(), static_cast<std::size_t>(into.bytes()),
                      kNcclUint8, static_cast<int>(peer), group_.comm,
                      hub_.queue().stream()),
      "ncclRecv");
}

Result<void> NcclOp::open_posts() {
  return checked(hub_.api().group_start(), "ncclGroupStart");
}

Result<void> NcclOp::close_posts() {
  SP_CHECK(checked(hub_.api().group_end(), "ncclGroupEnd"));
  // Calls that NCCL has not accepted yet may not be on the stream.
  return hub_.settle(group_, this, hub_.bootstrap().timeout());
}

void NcclOp::discard_posts() noexcept {
  // The stage has failed already, and its communicator will be aborted.
  static_cast<void>(hub_.api().group_end());
}

bool NcclOp::busy() const { return !done_ && !hub_.is_drained(); }

Result<bool> NcclOp::through() {
  if (!is_last()) return true;
  SP_CHECK(hub_.state_of(group_, this));
  if (mark_ == nullptr) {
    SP_ASSIGN(mark_, hub_.queue().mark());
  }
  SP_ASSIGN(done_, mark_->reached());
  return done_;
}

Result<void> NcclHub::checked(int code, const char* call, const Group& group,
                              const NcclOp* op) {
  const Result<void> good = nccl::checked(api_, code, call);
  if (good || code != kRemoteError) return good;
  const Result<void> all_there = roll_call(
      group, op == nullptr ? kSetUp : op->describe(), bootstrap_->timeout());
  if (all_there) return good;
  return shardprop::fail(good.error().code, good.error().message + "; " +
                                                all_there.error().message);
}

Result<int> NcclHub::state_of(const NcclGroup& group, const NcclOp* op) {
  int state = kSuccess;
  SP_CHECK(nccl::checked(api_, api_.comm_get_async_error(group.comm, &state),
                         "ncclCommGetAsyncError"));
  SP_CHECK(checked(state, "NCCL", group.group, op));
  return state;
}

Result<void> NcclHub::settle(const NcclGroup& group, const NcclOp* op,
                             std::chrono::milliseconds timeout) {
  Result<int> state = kInProgress;
  const bool settled = poll(Clock::now() + timeout, [&] {
    state = state_of(group, op);
    return !state || *state != kInProgress;
  });
  SP_CHECK(state);
  if (failure()) return shardprop::fail(*failure());
  if (settled) return {};
  return shardprop::fail(ErrorCode::kTimeout,
                         "NCCL did not get ready within " +
                             std::to_string(timeout.count()) + " ms");
}

bool NcclHub::poll(Clock::time_point deadline,
                   const std::function<bool()>& done) {
  for (;;) {
    if (done()) return true;
    hear();
    if (failure() || Clock::now() > deadline) return false;
    std::this_thread::sleep_for(kNap);
  }
}

Result<NcclGroup*> NcclHub::group(const Group& group, Group::Place place,
                                  std::chrono::milliseconds timeout) {
  const auto found = groups_.find(group);
  if (found != groups_.end()) return found->second.get();
  // The tensor owns the id, because an engine may write it after a timeout.
  const auto id = std::make_shared<UniqueId>();
  if (place.index == 0) {
    SP_CHECK(
        nccl::checked(api_, api_.get_unique_id(id.get()), "ncclGetUniqueId"));
  }
  const LocalTensor bytes =
      LocalTensor::wrap(id->internal, {sizeof(id->internal)}, DType::kU8, id);
  CollectiveCall call{
      .kind = CollectiveKind::kBroadcast, .outputs = {bytes}, .where = kSetUp};
  if (place.index == 0) call.inputs = {bytes};
  SP_CHECK(bootstrap_->run(group, std::move(call)));

  auto made = std::make_unique<NcclGroup>(
      NcclGroup{group, group.list(place.list), place.index});
  Config config;
  config.blocking = 0;
  // NCCL takes the GPU that is the calling thread's current one.
  SP_CHECK(queue_->on_device([&] {
    return nccl::checked(
        api_,
        api_.comm_init_rank_config(&made->comm, static_cast<int>(group.size()),
                                   *id, static_cast<int>(place.index), &config),
        "ncclCommInitRankConfig");
  }));
  NcclGroup* const out = made.get();
  groups_.emplace(group, std::move(made));
  in_order_.push_back(out);
  SP_CHECK(settle(*out, nullptr, timeout));
  return out;
}

void NcclHub::progress() {
  advance_pending();
  hear();
}

void NcclHub::hear() {
  if (failure()) return;
  if (auto heard = bootstrap_->failure()) fail(*std::move(heard), false);
}

void NcclHub::stop(bool tell) {
  if (tell) bootstrap_->abort(*failure());
  // Aborts all communicators in parallel. Each abort frees memory, for which
  // CUDA waits until no kernel runs on the GPU. The kernels of a communicator
  // run until it is aborted too.
  {
    std::vector<std::jthread> aborts;
    for (NcclGroup* const made : in_order_) {
      if (made->comm == nullptr) continue;
      aborts.emplace_back([this, comm = std::exchange(made->comm, nullptr)] {
        api_.comm_abort(comm);
      });
    }
  }
  drained_ = collective::drains(*queue_, bootstrap_->timeout() / 4);
}

Result<void> NcclHub::wait(collective::StagedOp& waited,
                           std::chrono::milliseconds timeout) {
  // All operations of this hub are NcclOps.
  auto& op = static_cast<NcclOp&>(waited);
  const auto deadline = Clock::now() + timeout * 3 / 4;
  const bool in_time = op.over() || poll(deadline, [&] {
                         progress();
                         return op.over();
                       });
  if (!in_time && !failure()) fail(late(op, timeout), true);
  return ending(op, bootstrap_->rank());
}

Error NcclHub::late(const NcclOp& op, std::chrono::milliseconds timeout) {
  const Result<void> all_there =
      roll_call(op.group().group, op.describe(), timeout);
  if (!all_there) return all_there.error();
  return {ErrorCode::kTimeout, op.describe() + " did not finish within " +
                                   std::to_string(timeout.count()) +
                                   " ms though all members came"};
}

Result<void> NcclHub::roll_call(const Group& group, const std::string& call,
                                std::chrono::milliseconds timeout) {
  const auto before = bootstrap_->timeout();
  bootstrap_->set_timeout(timeout / 4);
  Result<void> all_there = bootstrap_->barrier(group, "after " + call);
  bootstrap_->set_timeout(before);
  if (!all_there && all_there.error().help.empty()) {
    return shardprop::fail(
        Error(std::move(all_there).error()).with_help(kOneOrder));
  }
  return all_there;
}

NcclHub::~NcclHub() {
  poll(Clock::now() + bootstrap_->timeout(), [this] {
    progress();
    return all_over();
  });
  if (!all_over()) {
    fail({ErrorCode::kTimeout, "collectives were left unfinished"}, true);
  }
  // The order is the same on all ranks, because members wait for each other.
  for (const NcclGroup* made : in_order_) {
    if (made->comm != nullptr) api_.comm_destroy(made->comm);
  }
}

}  // namespace shardprop::nccl
