// The known recipes, priced next to a plan.
#pragma once

#include "plan/staged_search.h"

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

#include <vector>

namespace shardprop {

// The best plan of each recipe that fits the mesh, and first the optimum if the
// options ask for a recipe themselves.
//
// The prices are those of the search, which begins with the plans of all recipes.
// In the remaining time, recipes without a proof are searched again if the plan
// is proven: no recipe is then better than the plan. A recipe without a plan
// gets the plan that it lays out itself, with all other values replicated.
// Precondition: `options.start` is set.
Result<std::vector<PlanRecipe>> compare_recipes(const Graph& graph,
                                                const DeviceMesh& mesh,
                                                const Topology& topology,
                                                const OpLibrary& library,
                                                const PlanOptions& options,
                                                const StagedResult& found);

}  // namespace shardprop
