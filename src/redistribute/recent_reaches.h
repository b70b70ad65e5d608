// RecentReaches: the searches that the last calls made, so that the next call
// with an operand of the same layout and shape goes on where one stopped.
//
//   mm(x, w1), mm(x, w2), x S(0),S(1) on dp=4,tp=8: the second call finds what
//   it takes to move x.
//
// A search belongs to whoever took it until it is put back: calls on several
// threads never share one. What it answers does not depend on who used it
// before.
#pragma once

#include "redistribute/reach.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace shardprop::redistribute {

class RecentReaches {
 public:
  // As Reach::from().
  std::unique_ptr<Reach> take(const RedistributePlanner& planner,
                              const Layout& source, const TensorMeta& meta,
                              std::span<const Placement> partials,
                              Reach::Orders orders);
  // Keeps it in place of the one that was put back longest ago, unless it is
  // very large.
  void put_back(std::unique_ptr<Reach> reach) noexcept;

 private:
  // Each takes some tens of bytes a layout: some 64 MiB together at most.
  static constexpr std::size_t kMost = 16;
  static constexpr std::size_t kMostStates = std::size_t{1} << 16;
  struct Kept {
    std::uint64_t put_back = 0;
    std::unique_ptr<Reach> reach;
  };
  std::mutex mutex_;
  std::uint64_t clock_ = 0;
  std::array<Kept, kMost> kept_;
};

}  // namespace shardprop::redistribute
