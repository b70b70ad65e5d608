// RecentReaches keeps the searches of the last calls. The next call with an
// operand of the same layout and shape continues such a search.
//
//   mm(x, w1), mm(x, w2), x S(0),S(1) on dp=4,tp=8: the second call finds what
//   it takes to move x.
//
// A search belongs to its user until it is put back, so calls on several
// threads never share one. Its answers do not depend on earlier users.
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
  // Returns a kept search, or Reach::from() of the arguments.
  std::unique_ptr<Reach> take(const RedistributePlanner& planner,
                              const Layout& source, const TensorMeta& meta,
                              std::span<const Placement> partials,
                              Reach::Orders orders);
  // Keeps the search unless it is very large. It replaces the one that was put
  // back the longest time ago.
  void put_back(std::unique_ptr<Reach> reach) noexcept;

 private:
  // Each search takes some tens of bytes per layout, so all together take at
  // most about 64 MiB.
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
