#include <shardprop/collective/communicator.h>

#include "base/try.h"
#include "collective/call_check.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shardprop {
namespace {

// Clocks count nanoseconds in 64 bits. A time point plus some multiples of this
// many hours fits.
constexpr std::chrono::hours kLongestTimeout{24 * 365 * 50};

}  // namespace

std::chrono::milliseconds within_clock(std::chrono::milliseconds timeout) {
  return std::clamp<std::chrono::milliseconds>(
      timeout, std::chrono::milliseconds(0), kLongestTimeout);
}

Result<std::shared_ptr<Work>> Communicator::start(const Group& group,
                                                  CollectiveCall call) {
  if (group.largest_rank() >= size_) {
    return fail(ErrorCode::kGroup,
                "group " + to_string(group) + " goes beyond the " +
                    std::to_string(size_) + " ranks there are");
  }
  const std::optional<Group::Place> place = group.place_of(rank_);
  if (!place) {
    return fail(ErrorCode::kNotInGroup, "rank " + std::to_string(rank_) +
                                            " is not a member of group " +
                                            to_string(group));
  }
  SP_CHECK(collective::check_call(call, group.size(), place->index));
  const std::int64_t payload = payload_bytes(call, group.size(), place->index);
  SP_ASSIGN(std::shared_ptr<Work> work,
            do_start(group, *place, std::move(call)));
  ++calls_;
  payload_bytes_ += payload;
  return work;
}

Result<void> Communicator::run(const Group& group, CollectiveCall call) {
  SP_ASSIGN(const std::shared_ptr<Work> work, start(group, std::move(call)));
  return work->wait();
}

Result<void> Communicator::barrier(const Group& group,
                                   const std::string& where) {
  // A rank has the bytes of all members only after all members have arrived.
  SP_ASSIGN(const LocalTensor mine, allocate({1}, DType::kU8));
  SP_ASSIGN(const LocalTensor all, allocate({group.size()}, DType::kU8));
  // The byte is set, because a memory checker reports a sent byte that was
  // never written.
  const std::byte zero{0};
  SP_CHECK(memory_ops().fill(mine, &zero));
  CollectiveCall call{
      .kind = CollectiveKind::kAllGather, .inputs = {mine}, .where = where};
  for (std::int64_t r = 0; r < group.size(); ++r) {
    call.outputs.push_back(all.narrow(0, r, 1));
  }
  const std::int64_t payload = payload_bytes_;
  const Result<void> done = run(group, std::move(call));
  payload_bytes_ = payload;
  return done;
}

Result<LocalTensor> Communicator::allocate(const Dims& sizes, DType dtype) {
  return memory_ops().allocate(sizes, dtype);
}

MemoryOps& Communicator::memory_ops() { return host_memory_ops(); }

CommunicatorStats Communicator::stats() const {
  CommunicatorStats stats;
  stats.calls = calls_;
  stats.payload_bytes = payload_bytes_;
  add_engine_stats(stats);
  return stats;
}

}  // namespace shardprop
