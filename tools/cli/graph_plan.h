// A graph and a plan of it, as the options of a subcommand ask: solved anew, or
// the one saved in --plan.
#pragma once

#include "cli/command.h"

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>

#include <memory>
#include <vector>

namespace shardprop::cli {

struct GraphPlan {
  std::shared_ptr<const OpLibrary> library;
  Graph graph;
  Plan plan;
};

// planning_options(), --plan and --program.
std::vector<Option> graph_plan_options();

// Errors: those of the options, of load_graph() and make_plan(); kPlanFile;
// kPlanOtherGraph, where the plan is one of another graph or mesh.
Result<GraphPlan> graph_plan(const Arguments& arguments);

}  // namespace shardprop::cli
