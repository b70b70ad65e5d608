// Returns the plan of a graph on one rank, without shards and redistributions.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

namespace shardprop {

Plan unsharded_plan(const Graph& graph, Optimizer optimizer);

}  // namespace shardprop
