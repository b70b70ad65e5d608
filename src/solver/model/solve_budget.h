// budget_of() makes the budget of a solve from its options.
#pragma once

#include "base/budget.h"

#include <shardprop/solver/solve.h>

namespace shardprop::solver {

inline Budget budget_of(const SolveOptions& options) {
  return Budget({options.time_limit_seconds, options.work_limit}, options.stop,
                options.start);
}

}  // namespace shardprop::solver
