// minimal_conflict() reduces the requests of an infeasible problem to those that
// conflict. It drops the recipe, then each pin, and keeps it dropped if the rest
// is still infeasible.
//
//   pins a, b, c; a and c exclude each other  ->  a, c
#pragma once

#include "base/budget.h"
#include "plan/evaluate/plan_solution.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/plan/pin.h>
#include <shardprop/plan/plan_options.h>

#include <vector>

namespace shardprop {

// Returns the pins of the conflict. `solution` is that of the whole question
// before, and that of the fewest requests afterwards; it says whether each of
// them is needed. `left_out` receives the parts that the checks left out.
// Errors: those of PlanProblem::create(), kStopped excepted.
Result<std::vector<Pin>> minimal_conflict(
    const Graph& graph, const DeviceMesh& mesh, const Topology& topology,
    const OpLibrary& library, const PlanOptions& options, const Budget& budget,
    PlanSolution& solution, std::vector<PlanSolution::LeftOut>& left_out);

}  // namespace shardprop
