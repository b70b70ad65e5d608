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
// The prices are those that the search met: each search begins with the plans
// of all recipes. What the search left open is looked at in the time that it
// left, and only next to a plan that is proven: no recipe is then better than
// the plan. A recipe without a plan gets the one that it lays out itself, with
// all else replicated. Precondition: `options.start` is set.
Result<std::vector<PlanRecipe>> compare_recipes(const Graph& graph,
                                                const DeviceMesh& mesh,
                                                const Topology& topology,
                                                const OpLibrary& library,
                                                const PlanOptions& options,
                                                const StagedResult& found);

}  // namespace shardprop
