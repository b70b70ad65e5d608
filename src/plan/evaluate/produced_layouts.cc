#include "plan/evaluate/produced_layouts.h"

#include <algorithm>
#include <cstddef>

namespace shardprop {

std::vector<std::int64_t> held_as_made(const PlanProblem& problem,
                                       const PlanAssignment& assignment) {
  std::vector<std::int64_t> out;
  out.reserve(problem.storages().size());
  for (std::size_t s = 0; s < problem.storages().size(); ++s) {
    const PlanStorage& storage = problem.storages()[s];
    std::int64_t until = storage.made_at;
    for (const UseSegment& segment : storage.segments) {
      std::int64_t last = 0;
      bool as_made = false;
      for (std::size_t u = segment.first; u < segment.first + segment.count;
           ++u) {
        last = std::max(last, storage.uses[u].until);
        as_made = as_made || !assignment.taken[s][u];
      }
      if (as_made) until = std::max(until, last);
    }
    if (storage.persistent) {
      until = static_cast<std::int64_t>(problem.graph().nodes().size());
    }
    out.push_back(until);
  }
  for (const AssignedCopy& copy : assignment.copies) {
    if (copy.source) continue;
    std::int64_t& until = out[copy.storage.index()];
    until = std::max(until, copy.made_at);
  }
  return out;
}

}  // namespace shardprop
