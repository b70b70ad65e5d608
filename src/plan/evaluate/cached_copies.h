// CachedCopies lists the copies of each buffer and the copies that exist in a
// slot.
#pragma once

#include "plan/evaluate/plan_assignment.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

class CachedCopies {
 public:
  // `plan` must outlive the object.
  CachedCopies(const PlanProblem& problem, const PlanAssignment& plan);

  // Returns the copies of the buffer in the order of plan.copies.
  std::span<const std::size_t> of(PlanBufferId buffer) const {
    return buffers_[buffer.index()].all;
  }

  // Calls visit(copy) for every copy of the buffer that exists in `slot`, in no
  // particular order. The time grows with the number of copies that exist in
  // `slot` or across pauses between segments of uses, not with the number of
  // all copies.
  template <class Visit>
  void cached_at(PlanBufferId buffer, std::int64_t slot,
                 const Visit& visit) const {
    const Copies& copies = buffers_[buffer.index()];
    const auto before = [&](std::int64_t at, std::size_t copy) {
      return at < plan_.copies[copy].produced_at;
    };
    auto brief = std::upper_bound(copies.brief.begin(), copies.brief.end(),
                                  slot, before);
    while (brief != copies.brief.begin() &&
           plan_.copies[*--brief].produced_at == slot) {
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
    // Copies that exist in one slot only, and copies that exist in several.
    // Both lists are ordered by produced_at.
    std::vector<std::size_t> brief;
    std::vector<std::size_t> lasting;
    // last_freed[i] is the last slot in which one of lasting[0] to lasting[i]
    // exists.
    std::vector<std::int64_t> last_freed;
  };

  const PlanAssignment& plan_;
  std::vector<Copies> buffers_;
};

}  // namespace shardprop
