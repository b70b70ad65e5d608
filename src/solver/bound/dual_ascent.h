// DualAscent: when the dual bound is begun, when it has the first turns of a
// search, and what the search takes from it.
#pragma once

#include "solver/bound/search_state.h"

#include <cstdint>
#include <vector>

namespace shardprop::solver {

// Once the dual has done this much, the search may rely on its bound.
inline constexpr std::uint64_t kDualFirst = 2'500'000'000;

class DualAscent {
 public:
  explicit DualAscent(SearchState& state) : state_(state) {}

  // As soon as a cost is known, for the bound is sharper with one, or after
  // some rounds without.
  bool is_due(int rounds) const;
  // Begins, or begins again with the best cost and the prices so far.
  void start();
  // Whether it has the first worker's turns to itself.
  bool settling() const {
    return state_.dual != nullptr && !state_.dual->stalled() &&
           state_.dual->work() < kDualFirst;
  }
  void run(std::uint64_t work);
  void gather();
  // Begins where another dual ended, and leaves where this one did.
  void begin_with(const Messages& messages);
  void leave(Messages& messages) const;

  // What the search steers by; of the last gather().
  const std::vector<int>& decoded() const { return decoded_; }
  const std::vector<double>& prices() const { return prices_; }

 private:
  SearchState& state_;
  bool has_target_ = false;
  std::vector<int> decoded_;
  std::vector<double> prices_;
};

}  // namespace shardprop::solver
