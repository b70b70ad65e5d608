#include "plan/evaluate/produced_layouts.h"

#include <algorithm>
#include <cstddef>

namespace shardprop {

std::vector<std::int64_t> read_as_produced(const PlanProblem& problem,
                                           const PlanAssignment& assignment) {
  std::vector<std::int64_t> out;
  out.reserve(problem.buffers().size());
  for (std::size_t s = 0; s < problem.buffers().size(); ++s) {
    const PlanBuffer& buffer = problem.buffers()[s];
    std::int64_t until = buffer.produced_at;
    for (const UseSegment& segment : buffer.segments) {
      std::int64_t last = 0;
      bool as_made = false;
      for (std::size_t u = segment.first; u < segment.first + segment.count;
           ++u) {
        last = std::max(last, buffer.uses[u].until);
        as_made = as_made || !assignment.read[s][u];
      }
      if (as_made) until = std::max(until, last);
    }
    if (buffer.persistent) {
      until = static_cast<std::int64_t>(problem.graph().nodes().size());
    }
    out.push_back(until);
  }
  for (const AssignedCopy& copy : assignment.copies) {
    if (copy.source) continue;
    std::int64_t& until = out[copy.buffer.index()];
    until = std::max(until, copy.produced_at);
  }
  return out;
}

}  // namespace shardprop
