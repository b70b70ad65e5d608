// `PlanOptions` are the user's settings other than graph, mesh and topology:
// the question, the control of the run, and settings for debugging.
//
//   PlanOptions options;
//   Result<void> set = set_option(options, "memory", "80GiB");
//   const PlanQuestion& question = options;
//   question.memory_limit;      // 85899345920
//   options.gap = kDefaultGap;  // of RunControl
#pragma once

#include <shardprop/base/option.h>
#include <shardprop/plan/plan_question.h>
#include <shardprop/plan/run_control.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `PlanDebugging` switches parts of the planner off, to measure their gain.
struct PlanDebugging {
  // The names of the search procedures that are switched off (`layer-mix`).
  // Plan::procedures lists all names.
  std::vector<std::string> switched_off;
};

// Functions that need only one of the three take it by its own type.
struct PlanOptions : PlanQuestion, RunControl, PlanDebugging {};

// Returns the options with the defaults that depend on the graph.
PlanOptions resolved(PlanOptions options, const Graph& graph);

// Returns the options that have a text form: all except `forced`, `start`,
// `start_from`, `stop`, `progress` and `switched_off`. Flags of the command line are
// these names, with `-` for `_`. Defaults are those of the command line, so
// that of `gap` is kDefaultGap.
std::span<const OptionInfo> plan_option_table();
// Error: kInvalidArgument (an unknown name, a value out of bounds) and those of
// Pin::parse().
Result<void> set_option(PlanOptions& options, std::string_view name,
                        std::string_view text);
// Returns the value as text; empty if the option is unset. Error:
// kInvalidArgument (an unknown name).
Result<std::string> get_option(const PlanOptions& options,
                               std::string_view name);
// Checks that every option is within its bounds; make_plan() calls this first.
// Error: kInvalidArgument.
Result<void> validate(const PlanOptions& options);

}  // namespace shardprop
