// What views that pick or repeat elements (PlanStorage::shows) add to the bytes
// that the network counts for what they show. Every figure is a lower bound.
//
// While a storage is in use anyway, a view of it adds nothing. Afterwards views
// keep it: each counts a share of it, as many as may be there then, so that
// together they count no more than there is.
//
//   qkv 96 KiB -> split -> q k v, saved when qkv is not used any more: 32 KiB
//   each, as if they had memory of their own
//   qkv 96 KiB -> slice -> q, alone: 96 KiB
#pragma once

#include "plan/plan_problem.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardprop {

class ShownMemory {
 public:
  // `problem` must outlive the object.
  explicit ShownMemory(const PlanProblem& problem);

  // The first slot in which nothing that this view shows, through whatever views,
  // is counted for its own uses.
  std::int64_t covered_until(PlanStorageId view) const {
    return views_[view.index()].covered_until;
  }
  // From then on, by choice of the maker: as it was made.
  std::int64_t share(PlanStorageId view, std::size_t choice) const {
    return views_[view.index()].by_choice[choice];
  }
  // By state: as it was made in that state. kNotMade where it is not.
  static constexpr std::int64_t kNotMade =
      std::numeric_limits<std::int64_t>::max();
  std::int64_t share_in(PlanStorageId view, StorageState state) const {
    return views_[view.index()].by_state[state];
  }

 private:
  struct View {
    std::int64_t covered_until = 0;
    std::vector<std::int64_t> by_choice;
    std::vector<std::int64_t> by_state;
  };

  void find_lives(const PlanProblem& problem);
  void find_shares(const PlanProblem& problem);

  std::vector<View> views_;         // by storage; empty where it shows nothing
  std::vector<std::size_t> roots_;  // by storage: whose memory it may be
  std::vector<std::int64_t> keepers_;  // by storage: views that may outlive it
};

}  // namespace shardprop
