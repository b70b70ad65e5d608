#include "nccl/nccl_hub.h"

#include <shardprop/base/error.h>

#include "base/try.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace shardprop::nccl {
namespace {

using namespace std::chrono_literals;

constexpr int kBytes = 1;  // ncclUint8
constexpr auto kNap = 20us;

}  // namespace

NcclOp::NcclOp(NcclHub& hub, NcclGroup& group, CollectiveCall call)
    : StagedOp(group.ranks, group.index, group.calls++, std::move(call),
               hub.queue()),
      hub_(hub),
      group_(group) {}

Result<void> NcclOp::send(std::int64_t peer, const LocalTensor& from) {
  if (from.numel() == 0) return {};
  return checked(
      hub_.api(),
      hub_.api().send(from.data(), static_cast<std::size_t>(from.bytes()),
                      kBytes, static_cast<int>(peer), group_.comm,
                      hub_.queue().stream()),
      "ncclSend");
}

Result<void> NcclOp::receive(std::int64_t peer, const LocalTensor& into) {
  if (into.numel() == 0) return {};
  return checked(
      hub_.api(),
      hub_.api().recv(into.data(), static_cast<std::size_t>(into.bytes()),
                      kBytes, static_cast<int>(peer), group_.comm,
                      hub_.queue().stream()),
      "ncclRecv");
}

Result<void> NcclOp::open_posts() {
  return checked(hub_.api(), hub_.api().group_start(), "ncclGroupStart");
}

Result<void> NcclOp::close_posts() {
  SP_CHECK(checked(hub_.api(), hub_.api().group_end(), "ncclGroupEnd"));
  // What NCCL is still taking in may not be on the stream yet.
  return hub_.settle(group_.comm, hub_.bootstrap().timeout());
}

Result<bool> NcclOp::through() {
  if (!is_last()) return true;
  int state = kSuccess;
  SP_CHECK(checked(hub_.api(),
                   hub_.api().comm_get_async_error(group_.comm, &state),
                   "ncclCommGetAsyncError"));
  SP_CHECK(checked(hub_.api(), state, "NCCL"));
  if (mark_ == nullptr) {
    SP_ASSIGN(mark_, hub_.queue().mark());
  }
  SP_ASSIGN(done_, mark_->reached());
  return done_;
}

Result<void> NcclHub::settle(Comm comm, std::chrono::milliseconds timeout) {
  int state = kInProgress;
  Result<void> asked;
  const bool settled = poll(Clock::now() + timeout, [&] {
    asked = checked(api_, api_.comm_get_async_error(comm, &state),
                    "ncclCommGetAsyncError");
    return !asked || state != kInProgress;
  });
  SP_CHECK(asked);
  if (failure()) return shardprop::fail(*failure());
  if (!settled) {
    return shardprop::fail(ErrorCode::kTimeout,
                           "NCCL did not get ready within " +
                               std::to_string(timeout.count()) + " ms");
  }
  return checked(api_, state, "NCCL");
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
  UniqueId id{};
  if (place.index == 0) {
    SP_CHECK(checked(api_, api_.get_unique_id(&id), "ncclGetUniqueId"));
  }
  const LocalTensor bytes =
      LocalTensor::wrap(id.internal, {sizeof(id.internal)}, DType::kU8);
  CollectiveCall call{.kind = CollectiveKind::kBroadcast,
                      .outputs = {bytes},
                      .where = "set-up of NCCL"};
  if (place.index == 0) call.inputs = {bytes};
  SP_CHECK(bootstrap_->run(group, std::move(call)));

  auto made = std::make_unique<NcclGroup>(
      NcclGroup{group, group.list(place.list), place.index});
  Config config;
  config.blocking = 0;
  SP_CHECK(checked(
      api_,
      api_.comm_init_rank_config(&made->comm, static_cast<int>(group.size()),
                                 id, static_cast<int>(place.index), &config),
      "ncclCommInitRankConfig"));
  NcclGroup* const out = made.get();
  groups_.emplace(group, std::move(made));
  SP_CHECK(settle(out->comm, timeout));
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
  for (auto& [group, made] : groups_) {
    if (made->comm != nullptr) api_.comm_abort(made->comm);
    made->comm = nullptr;
  }
}

Result<void> NcclHub::wait(collective::StagedOp& waited,
                           std::chrono::milliseconds timeout) {
  // There are no others here.
  auto& op = static_cast<NcclOp&>(waited);
  const auto deadline = Clock::now() + timeout * 3 / 4;
  const bool in_time = op.over() || poll(deadline, [&] {
                         progress();
                         return op.over();
                       });
  if (!in_time && !failure()) fail(post_mortem(op, timeout), true);
  return ending(op, bootstrap_->rank());
}

Error NcclHub::post_mortem(const NcclOp& op,
                           std::chrono::milliseconds timeout) {
  const auto before = bootstrap_->timeout();
  bootstrap_->set_timeout(timeout / 4);
  const Result<void> all_there =
      bootstrap_->barrier(op.group().group, "after " + op.describe());
  bootstrap_->set_timeout(before);
  if (!all_there) return all_there.error();
  return {ErrorCode::kTimeout, op.describe() + " did not finish within " +
                                   std::to_string(timeout.count()) +
                                   " ms though all members came"};
}

NcclHub::~NcclHub() {
  poll(Clock::now() + bootstrap_->timeout(), [this] {
    progress();
    return all_over();
  });
  if (!all_over()) {
    fail({ErrorCode::kTimeout, "collectives were left unfinished"}, true);
  }
  for (auto& [group, made] : groups_) {
    if (made->comm != nullptr) api_.comm_destroy(made->comm);
  }
}

}  // namespace shardprop::nccl
