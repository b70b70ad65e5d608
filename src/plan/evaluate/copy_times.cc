#include "plan/evaluate/copy_times.h"

#include <algorithm>

namespace shardprop {

std::vector<CopyTimes> copy_times(const PlanProblem& problem,
                                  const PlanAssignment& assignment) {
  const Windows& windows = problem.windows();
  std::vector<CopyTimes> out;
  out.reserve(assignment.copies.size());
  for (std::size_t c = 0; c < assignment.copies.size(); ++c) {
    const AssignedCopy& copy = assignment.copies[c];
    const PlanBuffer& buffer = problem.buffer(copy.buffer);
    CopyTimes times{problem.overlap_window(buffer, copy.produced_at),
                    problem.issue_slot(buffer, copy.produced_at)};
    if (copy.source && *copy.source < c) {
      const CopyTimes& source = out[*copy.source];
      times.exists_from = std::max(times.exists_from, source.exists_from);
      // The transfers of one window run one after another.
      const bool is_chained = times.window && times.window == source.window;
      if (times.window && !is_chained &&
          source.complete_from > windows.first_slot(*times.window)) {
        times.window.reset();
      }
    }
    times.complete_from =
        times.window ? windows.last_slot(*times.window) + 1 : copy.produced_at;
    out.push_back(times);
  }
  return out;
}

}  // namespace shardprop
