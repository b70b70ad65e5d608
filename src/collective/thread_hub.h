// `ThreadHub` is the state that the ranks of a ThreadWorld share: the channels
// of their groups, and the first failure, which ends all ranks.
#pragma once

#include "base/memory_reserve.h"
#include "collective/thread_channel.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardprop::collective {

class ThreadHub {
 public:
  ThreadHub(std::int64_t size, const CommunicatorOptions& options);

  std::int64_t size() const { return size_; }
  const CommunicatorOptions& options() const { return options_; }
  // True if every rank can have a core, so that spinning hurts nobody.
  bool may_spin() const { return may_spin_; }

  std::shared_ptr<ThreadChannel> channel(const Group& group, std::int64_t list);

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Precondition: failed().
  Error failure() const;
  // The first failure wins. Precondition: no channel's mutex is held.
  void fail(Error failure);
  // Must be called if memory is exhausted, before fail() or leave().
  void open_reserve() noexcept { reserve_.release(); }

  // Removes the rank from the world and fails the members that still wait for
  // it.
  void leave(std::int64_t rank, const std::string& how);
  // Returns how the rank left, if it has left.
  std::optional<std::string> left(std::int64_t rank) const;
  // "rank 3 is in call 2 of group {2,3}: all_gather of f32[8]".
  std::string activity(std::int64_t rank) const;

 private:
  std::vector<std::shared_ptr<ThreadChannel>> channels() const;

  const std::int64_t size_;
  const CommunicatorOptions options_;
  const bool may_spin_;
  std::atomic<bool> failed_{false};
  // False if memory ran out before all channels knew; fail() may then be called
  // again.
  std::atomic<bool> all_told_{false};
  MemoryReserve reserve_;  // a failure is told with

  // May be locked while a channel's mutex is held, but not the reverse.
  mutable std::mutex left_mutex_;
  std::unordered_map<std::int64_t, std::string> left_;

  mutable std::mutex mutex_;  // never taken with a channel's mutex held
  std::optional<Error> failure_;
  std::unordered_map<Group, std::vector<std::shared_ptr<ThreadChannel>>>
      channels_;
};

}  // namespace shardprop::collective
