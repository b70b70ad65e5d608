// A graph and a plan of it, as the options of a subcommand ask: solved anew, or
// the one saved in --plan.
#pragma once

#include "cli/command.h"

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shardprop::cli {

struct GraphPlan {
  std::shared_ptr<const OpLibrary> library;
  Graph graph;
  Plan plan;
  std::vector<std::string> differences;  // as JudgedPlan's
};

// Whether the figures of a saved plan are taken, or worked out again.
enum class SavedPlan : std::uint8_t { kAsWritten, kJudged };

// What a command does with its plan. Where that is work (kWork), a signal ends
// it; where it is output alone, a signal waits until all of it is written
// (Console::until_written).
enum class WithPlan : std::uint8_t { kWork, kOutput };

// planning_options() and --plan.
std::vector<Option> graph_plan_options();

// Time limits count from here, reading included. Errors: those of the options,
// of load_graph(), make_plan() and judge_plan(); kPlanFile; kPlanOtherGraph,
// where the plan is one of another graph or mesh.
Result<GraphPlan> graph_plan(const Arguments& arguments, SavedPlan saved,
                             Console& console, WithPlan next = WithPlan::kWork);

// Figures of a saved plan that are not those of its choices, among the
// messages.
void warn_of_differences(const GraphPlan& given, Console& console);

}  // namespace shardprop::cli
