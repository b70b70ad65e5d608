#include <shardprop/redistribute/caching_planner.h>

#include "base/guard.h"
#include "base/try.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

// KeyView refers to the arguments that a plan depends on, for lookups.
struct KeyView {
  const Layout& src;
  const Layout& dst;
  const Dims& shape;
  DType dtype;
};

struct PlanKey {
  Layout src;
  Layout dst;
  Dims shape;
  DType dtype;
  operator KeyView() const { return {src, dst, shape, dtype}; }  // NOLINT
};

struct PlanKeyHash {
  using is_transparent = void;

  // Each word needs one multiplication, because a lookup should take tens of
  // nanoseconds only.
  static void mix(std::uint64_t& hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  static void mix(std::uint64_t& hash, const Layout& layout) {
    for (const Placement& placement : layout.placements()) {
      mix(hash, placement.bits());
    }
    std::uint64_t order = 0;
    for (const std::int8_t place : layout.shard_order()) {
      order = order << 4 | static_cast<std::uint64_t>(place);
    }
    mix(hash, order);
  }
  std::size_t operator()(const KeyView& key) const {
    auto hash = static_cast<std::uint64_t>(key.dtype);
    mix(hash, key.src);
    mix(hash, key.dst);
    for (const std::int64_t size : key.shape) {
      mix(hash, static_cast<std::uint64_t>(size));
    }
    return hash;
  }
};

struct KeyEqual {
  using is_transparent = void;
  bool operator()(const KeyView& a, const KeyView& b) const {
    return a.src == b.src && a.dst == b.dst && a.shape == b.shape &&
           a.dtype == b.dtype;
  }
};

}  // namespace

struct CachingPlanner::Body {
  Body(RedistributePlanner the_planner, std::size_t the_capacity)
      : planner(std::move(the_planner)), capacity(the_capacity) {}

  // Calls `use` on the plan while the cache keeps it.
  template <class Use>
  auto with_plan(const Layout& src, const Layout& dst, const TensorMeta& meta,
                 Use&& use)
      -> Result<decltype(use(
          std::declval<const std::shared_ptr<const RedistributePlan>&>()))> {
    const KeyView key{src, dst, meta.shape(), meta.dtype()};
    {
      const std::shared_lock lock(mutex);
      if (const auto found = plans.find(key); found != plans.end()) {
        hits.fetch_add(1, std::memory_order_relaxed);
        return use(found->second);
      }
    }
    SP_ASSIGN(RedistributePlan made, planner.plan(src, dst, meta));
    auto plan = std::make_shared<const RedistributePlan>(std::move(made));
    misses.fetch_add(1, std::memory_order_relaxed);
    const std::unique_lock lock(mutex);
    if (plans.size() >= capacity) plans.clear();
    plans.try_emplace(PlanKey{src, dst, meta.shape(), meta.dtype()}, plan);
    return use(plan);
  }

  RedistributePlanner planner;
  std::size_t capacity;
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> misses{0};
  mutable std::shared_mutex mutex;
  std::unordered_map<PlanKey, std::shared_ptr<const RedistributePlan>,
                     PlanKeyHash, KeyEqual>
      plans;
};

CachingPlanner::CachingPlanner(RedistributePlanner planner,
                               std::size_t capacity)
    : body_(std::make_unique<Body>(std::move(planner), capacity)) {}
CachingPlanner::~CachingPlanner() = default;
CachingPlanner::CachingPlanner(CachingPlanner&&) noexcept = default;
CachingPlanner& CachingPlanner::operator=(CachingPlanner&&) noexcept = default;

const RedistributePlanner& CachingPlanner::planner() const {
  return body_->planner;
}

Result<std::shared_ptr<const RedistributePlan>> CachingPlanner::plan(
    const Layout& src, const Layout& dst, const TensorMeta& meta) {
  return guarded([&] {
    return body_->with_plan(
        src, dst, meta,
        [](const std::shared_ptr<const RedistributePlan>& plan) {
          return plan;
        });
  });
}

Result<std::int64_t> CachingPlanner::cost(const Layout& src, const Layout& dst,
                                          const TensorMeta& meta) {
  return guarded([&] {
    return body_->with_plan(
        src, dst, meta,
        [](const std::shared_ptr<const RedistributePlan>& plan) {
          return plan->nanoseconds;
        });
  });
}

CachingPlanner::Statistics CachingPlanner::statistics() const {
  const std::shared_lock lock(body_->mutex);
  return {body_->hits.load(std::memory_order_relaxed),
          body_->misses.load(std::memory_order_relaxed), body_->plans.size()};
}

}  // namespace shardprop
