// search_in_stages() finds a plan early and a better one later. It searches the
// spaces of plans from the smallest to the named one, each within its share of
// the time and work.
//
// On one or two mesh dims larger than 1, the named space is built at once,
// unless reading a large graph has taken much of the time. On more of them, the
// first plan treats all mesh dims but the last as one. It is found as fast as
// on two mesh dims. If it is missing, plans over one run of mesh dims follow.
// Plans over two runs follow on more than three mesh dims, or if a plan is
// still missing.
//
// A space that cannot be built in time is skipped. The all-replicated plan is
// tried if a plan is missing, or if the best plan may be far from the optimum.
#pragma once

#include "base/budget.h"
#include "plan/search/best_stage.h"

#include <shardprop/plan/plan_space.h>

namespace shardprop {

// Errors: those of PlanProblem::create(), and PlanSolution::failure if no plan
// was found. Running out of time is an error only if no space could be built.
// The budget limits all stages together, set-up included.
Result<StagedResult> search_in_stages(
    const Graph& graph, const DeviceMesh& mesh, const Topology& topology,
    const OpLibrary& library, const PlanOptions& options, const Budget& budget);

}  // namespace shardprop
