#include "plan/evaluate/cached_copies.h"

namespace shardprop {

CachedCopies::CachedCopies(const PlanProblem& problem,
                           const PlanAssignment& plan)
    : plan_(plan), buffers_(problem.buffers().size()) {
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    const AssignedCopy& copy = plan.copies[c];
    Copies& copies = buffers_[copy.buffer.index()];
    copies.all.push_back(c);
    (copy.produced_at == copy.freed_at ? copies.brief : copies.lasting)
        .push_back(c);
  }
  for (Copies& copies : buffers_) {
    for (auto* list : {&copies.brief, &copies.lasting}) {
      std::stable_sort(
          list->begin(), list->end(), [&](std::size_t a, std::size_t b) {
            return plan.copies[a].produced_at < plan.copies[b].produced_at;
          });
    }
    std::int64_t last = -1;
    for (const std::size_t c : copies.lasting) {
      last = std::max(last, plan.copies[c].freed_at);
      copies.last_freed.push_back(last);
    }
  }
}

}  // namespace shardprop
