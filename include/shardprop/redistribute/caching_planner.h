// `CachingPlanner` is a RedistributePlanner that caches its plans, for
// frameworks that ask for the same pairs at every step.
//
// The cache is bounded: when it has `capacity` plans, it is cleared. A returned
// plan stays valid for as long as the caller keeps it. Several threads may use
// one CachingPlanner at once. Errors are not cached.
//
//   CachingPlanner planner(RedistributePlanner::create(mesh, h100).value());
//   planner.plan(src, dst, meta);   // plans
//   planner.plan(src, dst, meta);   // returns the cached plan
#pragma once

#include <shardprop/redistribute/planner.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shardprop {

class CachingPlanner {
 public:
  static constexpr std::size_t kDefaultCapacity = std::size_t{1} << 16;

  struct Statistics {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::size_t held = 0;
  };

  // Precondition: capacity >= 1.
  explicit CachingPlanner(RedistributePlanner planner,
                          std::size_t capacity = kDefaultCapacity);
  ~CachingPlanner();
  CachingPlanner(CachingPlanner&&) noexcept;
  CachingPlanner& operator=(CachingPlanner&&) noexcept;

  const RedistributePlanner& planner() const;

  // Returns the plan of RedistributePlanner::plan(). Strides of `meta` make no
  // difference.
  Result<std::shared_ptr<const RedistributePlan>> plan(const Layout& src,
                                                       const Layout& dst,
                                                       const TensorMeta& meta);
  Result<std::int64_t> cost(const Layout& src, const Layout& dst,
                            const TensorMeta& meta);

  Statistics statistics() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace shardprop
