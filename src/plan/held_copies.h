// The copies of each storage, and those that are held in a slot.
#pragma once

#include "plan/plan_assignment.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

class HeldCopies {
 public:
  // `plan` must outlive the object.
  HeldCopies(const PlanProblem& problem, const PlanAssignment& plan);

  // In the order of plan.copies.
  std::span<const std::size_t> of(PlanStorageId storage) const {
    return storages_[storage.index()].all;
  }

  // Calls visit(copy) for every copy of the storage held in `slot`, in no
  // order. Takes as long as there are copies held in `slot` or across pauses
  // between segments of uses, not as there are copies.
  template <class Visit>
  void held_at(PlanStorageId storage, std::int64_t slot,
               const Visit& visit) const {
    const Copies& copies = storages_[storage.index()];
    const auto before = [&](std::int64_t at, std::size_t copy) {
      return at < plan_.copies[copy].made_at;
    };
    auto brief = std::upper_bound(copies.brief.begin(), copies.brief.end(),
                                  slot, before);
    while (brief != copies.brief.begin() &&
           plan_.copies[*--brief].made_at == slot) {
      visit(*brief);
    }
    auto at = static_cast<std::size_t>(std::upper_bound(copies.lasting.begin(),
                                                        copies.lasting.end(),
                                                        slot, before) -
                                       copies.lasting.begin());
    while (at > 0 && copies.last_freed[at - 1] >= slot) {
      --at;
      const std::size_t copy = copies.lasting[at];
      if (plan_.copies[copy].freed_at >= slot) visit(copy);
    }
  }

 private:
  struct Copies {
    std::vector<std::size_t> all;
    // Held in one slot only, and in several; both by made_at.
    std::vector<std::size_t> brief;
    std::vector<std::size_t> lasting;
    // Up to and including lasting[i]: the last slot in which any is held.
    std::vector<std::int64_t> last_freed;
  };

  const PlanAssignment& plan_;
  std::vector<Copies> storages_;
};

}  // namespace shardprop
