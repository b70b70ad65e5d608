// find_conflict() explains why a problem has no assignment: it returns a minimal
// conflict, a set of constraints from which none can be removed.
#pragma once

#include <shardprop/solver/solve.h>

namespace shardprop::solver {

// `problem` must be infeasible. Constraints are removed in blocks (Junker's
// QuickXplain, AAAI 2004) as long as the rest is still proven infeasible.
// `options` gives the seed, passes, deadline and cancellation.
Conflict find_conflict(const Problem& problem, const SolveOptions& options);

// Runs solve() without the search for a minimal conflict.
Solution solve_plainly(const Problem& problem, const SolveOptions& options);

}  // namespace shardprop::solver
