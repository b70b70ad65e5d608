// The recipes that people know, priced beside a plan.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

#include <span>

namespace shardprop {

// Fills plan.recipes with the best plan of each, within `seconds` for all; with
// the optimum, too, where the plan follows a recipe itself. Where one of them
// is better than the plan, whose search was cut short, it takes its place.
Result<void> compare_recipes(const Graph& graph, const DeviceMesh& mesh,
                             const Topology& topology, const OpLibrary& library,
                             const PlanOptions& options,
                             std::span<const Recipe> recipes, double seconds,
                             Plan& plan);

}  // namespace shardprop
