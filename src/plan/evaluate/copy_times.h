// `copy_times()` returns when each copy of an assignment is in flight, and the
// overlap window that it overlaps.
#pragma once

#include "plan/evaluate/plan_assignment.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

struct CopyTimes {
  // The overlap window of the overlappable time. Empty if the program waits for
  // the copy in AssignedCopy::produced_at.
  std::optional<std::size_t> window;
  // The first slot in which the copy exists, complete or in flight.
  std::int64_t exists_from = 0;
  // The first slot in which the copy is complete.
  std::int64_t complete_from = 0;
};

// Returns the times by copy. The window is PlanProblem::overlap_window(), unless
// the source is itself a copy that is incomplete when the window begins. The
// program then waits for the copy, and its memory is an upper bound.
std::vector<CopyTimes> copy_times(const PlanProblem& problem,
                                  const PlanAssignment& assignment);

}  // namespace shardprop
