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

Result<void> NcclOp::copy(const LocalTensor& from, const LocalTensor& to) {
  return hub_.queue().copy(from, to);
}

Result<void> NcclOp::reduce(ReduceOp op, std::span<const LocalTensor> terms,
                            const LocalTensor& out) {
  return hub_.queue().reduce(op, terms, out);
}

Result<LocalTensor> NcclOp::allocate(const Dims& sizes, DType dtype) {
  return hub_.queue().allocate(sizes, dtype);
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
  if (failure_) return shardprop::fail(*failure_);
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
    if (!failure_) {
      if (auto failure = bootstrap_->failure()) fail(*failure, false);
    }
    if (failure_ || Clock::now() > deadline) return false;
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

  auto made = std::make_unique<NcclGroup>(NcclGroup{
      group, group.lists()[static_cast<std::size_t>(place.list)], place.index});
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
  for (std::size_t i = 0; i < pending_.size() && !failure_; ++i) {
    const std::shared_ptr<NcclOp> op = pending_[i];
    op->advance();
    if (op->over() && op->error()) fail(*op->error(), true);
  }
  std::erase_if(pending_,
                [](const std::shared_ptr<NcclOp>& op) { return op->over(); });
}

void NcclHub::fail(Error failure, bool tell) {
  if (failure_) return;
  failure_ = std::move(failure);
  if (tell) bootstrap_->abort(*failure_);
  for (auto& [group, made] : groups_) {
    if (made->comm != nullptr) api_.comm_abort(made->comm);
    made->comm = nullptr;
  }
  for (const std::shared_ptr<NcclOp>& op : pending_) {
    if (op->over() && !op->error()) continue;
    const std::int64_t bytes = op->abandon(*failure_);
    if (bytes == 0) continue;
    ++abandoned_;
    abandoned_bytes_ += bytes;
  }
}

Result<void> NcclHub::wait(NcclOp& op, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout * 3 / 4;
  const bool in_time = op.over() || poll(deadline, [&] {
                         progress();
                         return op.over();
                       });
  if (!in_time && !failure_) fail(post_mortem(op, timeout), true);
  if (!op.error()) return {};
  return shardprop::fail(
      Error(*op.error())
          .with_note("rank " + std::to_string(bootstrap_->rank()) +
                     " waited in call " + std::to_string(op.number()) +
                     " of group " + to_string(op.ranks())));
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

void NcclHub::add_stats(CommunicatorStats& stats) const {
  stats.parked += std::count_if(pending_.begin(), pending_.end(),
                                [](const std::shared_ptr<NcclOp>& op) {
                                  return op->dropped && !op->over();
                                });
  stats.abandoned += abandoned_;
  stats.abandoned_bytes += abandoned_bytes_;
}

NcclHub::~NcclHub() {
  if (!failure_) {
    poll(Clock::now() + bootstrap_->timeout(), [this] {
      progress();
      return pending_.empty();
    });
  }
  if (!pending_.empty()) {
    fail({ErrorCode::kTimeout, "collectives were left unfinished"}, true);
  }
  for (auto& [group, made] : groups_) {
    if (made->comm != nullptr) api_.comm_destroy(made->comm);
  }
}

}  // namespace shardprop::nccl
