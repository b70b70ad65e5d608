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
      const std::int64_t complete =
          source.window ? windows.last_slot(*source.window) + 1
                        : assignment.copies[*copy.source].produced_at;
      if (times.window && !is_chained &&
          complete > windows.first_slot(*times.window)) {
        times.window.reset();
      }
    }
    out.push_back(times);
  }
  return out;
}

}  // namespace shardprop
