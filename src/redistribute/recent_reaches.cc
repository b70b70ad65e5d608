#include "redistribute/recent_reaches.h"

#include <algorithm>
#include <utility>

namespace shardprop::redistribute {

std::unique_ptr<Reach> RecentReaches::take(const RedistributePlanner& planner,
                                           const Layout& source,
                                           const TensorMeta& meta,
                                           std::span<const Placement> partials,
                                           Reach::Orders orders) {
  {
    const std::scoped_lock lock(mutex_);
    for (Kept& kept : kept_) {
      if (kept.reach != nullptr &&
          kept.reach->is_from(source, meta, partials, orders)) {
        return std::move(kept.reach);
      }
    }
  }
  return Reach::from(planner, source, meta, partials, orders);
}

void RecentReaches::put_back(std::unique_ptr<Reach> reach) noexcept {
  if (reach == nullptr || !reach->is_whole() || reach->states() > kMostStates) {
    return;
  }
  const std::scoped_lock lock(mutex_);
  const auto place = std::min_element(
      kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) {
        const bool a_free = a.reach == nullptr;
        const bool b_free = b.reach == nullptr;
        return a_free != b_free ? a_free : a.put_back < b.put_back;
      });
  place->put_back = ++clock_;
  place->reach.swap(reach);
}

}  // namespace shardprop::redistribute
