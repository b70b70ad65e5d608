// Why a problem has no assignment: a set of its parts that clash, none of which
// can be left out.
#pragma once

#include <shardprop/solver/solve.h>

namespace shardprop::solver {

// `problem` must be infeasible. Parts are left out in blocks (Junker's
// QuickXplain, AAAI 2004) as long as what remains is still proven infeasible;
// `options` gives seed, passes, deadline and cancellation.
Conflict find_conflict(const Problem& problem, const SolveOptions& options);

// solve() without the search for a clash.
Solution solve_plainly(const Problem& problem, const SolveOptions& options);

}  // namespace shardprop::solver
