// compare_recipes() prices the known recipes next to a plan.
#pragma once

#include "base/budget.h"
#include "plan/search/staged_search.h"

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

#include <vector>

namespace shardprop {

// Returns the best plan of each recipe that fits the mesh. The optimum comes
// first if the options ask for a recipe themselves.
//
// The prices come from the search, which begins with the plans of all recipes.
// If the plan is proven, recipes without a proof are searched again in the
// remaining time. No recipe is then better than the plan. A recipe without a
// plan gets the plan that it lays out itself, with all other values replicated.
// The rest of the time is for all further searches together. Each of them has
// all the work of the budget. `left_out` receives the parts that a further search left out.
Result<std::vector<PlanRecipe>> compare_recipes(
    const Graph& graph, const DeviceMesh& mesh, const Topology& topology,
    const OpLibrary& library, const PlanOptions& options, const Budget& budget,
    const StagedResult& found, std::vector<PlanSolution::LeftOut>& left_out);

}  // namespace shardprop
