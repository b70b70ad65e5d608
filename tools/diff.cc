// diff: compares two saved plans.

#include "base/try.h"
#include "commands.h"

#include <shardprop/report/plan_diff.h>
#include <shardprop/request/saved_plan.h>

#include <string>
#include <utility>

namespace shardprop::cli {
namespace {

Result<int> run_diff(const Arguments& arguments, Console& console) {
  SP_ASSIGN(const auto max_input, arguments.bytes("--max-input"));
  const auto read = [&](const char* name) {
    const std::string path = arguments.get(name);
    return load_plan(path, path, *max_input);
  };
  SP_ASSIGN(const Plan a, read("PLAN_A"));
  SP_ASSIGN(const Plan b, read("PLAN_B"));
  const PlanDiff diff = diff_plans(a, b);
  console.data << (arguments.get("--format") == "json" ? diff_to_json(diff)
                                                       : diff_to_text(diff));
  return diff.is_empty() ? kDone : kFinding;
}

}  // namespace

Command diff_command() {
  std::vector<Option> options;
  options.push_back({.name = "PLAN_A",
                     .value = "PLAN_A",
                     .help = "a plan saved by explain --format json",
                     .required = true,
                     .input = input_value});
  options.push_back({.name = "PLAN_B",
                     .value = "PLAN_B",
                     .help = "another; costs are what it takes more",
                     .required = true,
                     .input = input_value});
  options.push_back({.name = "--max-input",
                     .value = "BYTES",
                     .help = "most to read of each file",
                     .fallback = "2GiB"});
  options.push_back(format_option());
  options.push_back(output_option());
  return {.name = "diff",
          .summary = "what differs between two plans, and what it costs",
          .example = "shardprop diff fsdp.json best.json",
          .options = std::move(options),
          .run = run_diff};
}

}  // namespace shardprop::cli
