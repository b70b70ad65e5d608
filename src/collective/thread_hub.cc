#include "collective/thread_hub.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/index.h"

namespace shardprop::collective {

ThreadHub::ThreadHub(std::int64_t size, const CommunicatorOptions& options)
    : size_(size),
      options_(options),
      may_spin_(size <= static_cast<std::int64_t>(
                            std::thread::hardware_concurrency())) {}

std::shared_ptr<ThreadChannel> ThreadHub::channel(const Group& group,
                                                  std::int64_t list) {
  const std::lock_guard lock(mutex_);
  auto& of_group = channels_[group];
  of_group.resize(static_cast<std::size_t>(group.num_lists()));
  auto& channel = of_group[index(list)];
  if (channel == nullptr) {
    channel = std::make_shared<ThreadChannel>(*this, group.list(list));
  }
  return channel;
}

Error ThreadHub::failure() const {
  const std::lock_guard lock(mutex_);
  return *failure_;
}

std::vector<std::shared_ptr<ThreadChannel>> ThreadHub::channels() const {
  std::vector<std::shared_ptr<ThreadChannel>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [group, of_group] : channels_) {
    for (const auto& channel : of_group) {
      if (channel != nullptr) all.push_back(channel);
    }
  }
  return all;
}

void ThreadHub::fail(Error failure) {
  {
    const std::lock_guard lock(mutex_);
    if (all_told_) return;
    if (!failure_) failure_ = std::move(failure);
    // A member that publishes after this loop has visited its channel reads the
    // flag under the channel's mutex.
    failed_.store(true, std::memory_order_release);
  }
  reserve_.release();
  // The failure never changes again.
  for (const auto& channel : channels()) channel->withdraw(*failure_);
  all_told_.store(true);
}

void ThreadHub::leave(std::int64_t rank, const std::string& how) {
  {
    const std::lock_guard lock(left_mutex_);
    left_[rank] = how;
  }
  for (const auto& channel : channels()) {
    const auto& ranks = channel->ranks();
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    if (found == ranks.end()) continue;
    const auto index = static_cast<std::size_t>(found - ranks.begin());
    if (const std::optional<std::string> call = channel->missed(index)) {
      fail(Error{ErrorCode::kRankFailed, "rank " + std::to_string(rank) + " " +
                                             how + " before " + *call});
      return;
    }
  }
}

std::optional<std::string> ThreadHub::left(std::int64_t rank) const {
  const std::lock_guard lock(left_mutex_);
  const auto found = left_.find(rank);
  if (found == left_.end()) return std::nullopt;
  return found->second;
}

std::string ThreadHub::activity(std::int64_t rank) const {
  const std::string name = "rank " + std::to_string(rank);
  for (const auto& channel : channels()) {
    const auto& ranks = channel->ranks();
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    if (found == ranks.end()) continue;
    const auto call =
        channel->activity(static_cast<std::size_t>(found - ranks.begin()));
    if (call) return name + " is in " + *call;
  }
  return name + " " + left(rank).value_or("is in no collective");
}

}  // namespace shardprop::collective
