// GraphPlan is a graph and its plan as the options of a subcommand specify
// them: solved, or read from --plan.
#pragma once

#include "cli/command.h"

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/request/plan_request.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop::cli {

struct GraphPlan {
  std::shared_ptr<const OpLibrary> library;
  std::shared_ptr<const Graph> graph;
  Plan plan;
  std::vector<std::string> differences;  // as JudgedPlan's
  std::string note;                      // as JudgedPlan's
};

// SavedPlan says whether the figures of a saved plan are kept or computed
// again.
enum class SavedPlan : std::uint8_t { kAsWritten, kJudged };

// WithPlan says how a command uses its plan. If it works on the plan (kWork), a
// signal ends the work. If it only prints (kOutput), a signal waits until all
// output is written (Console::until_written).
enum class WithPlan : std::uint8_t { kWork, kOutput };

// `PlanUse` states how a command gets its plan and how it uses it.
struct PlanUse {
  SavedPlan saved = SavedPlan::kJudged;
  WithPlan next = WithPlan::kWork;
  SearchLimit limit = SearchLimit::kTime;  // if the user gives none
  // Whether the program runs eagerly unless the user says otherwise.
  bool runs_eagerly = false;
};

// planning_options() and --plan.
std::vector<Option> graph_plan_options(SearchLimit limit = SearchLimit::kTime);

// Returns the request that planning_options() specify, with its graph read.
// Options that need no graph are checked before the graph is read. Errors: those
// of the options, of load_plan() (--start-from) and of load_graph().
Result<PlanRequest> plan_request(const Arguments& arguments,
                                 SearchLimit limit = SearchLimit::kTime);

// Answers the request of the options, or takes the plan of --plan. Errors: those of
// plan_request(), plan(), load_plan() and take_plan().
Result<GraphPlan> graph_plan(const Arguments& arguments, Console& console,
                             const PlanUse& use);

// Refuses options that say how to make a plan, for a command that makes none.
// `reason` ends the message: "--plan gives one that is made". `checked` are the
// options that the command compares with the plan. Error: kInvalidArgument.
Result<void> check_nothing_to_plan(
    const Arguments& arguments, const std::string& reason,
    std::initializer_list<std::string_view> checked = {});

// Prints the note of a saved plan, and a message for each of its figures that
// differs from the computed one.
void warn_of_differences(const GraphPlan& given, Console& console);

}  // namespace shardprop::cli
