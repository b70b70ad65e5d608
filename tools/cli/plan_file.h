// Plans saved by `explain --format json`, and read back.
#pragma once

#include "cli/command.h"
#include "io/input_file.h"

#include <shardprop/base/result.h>
#include <shardprop/plan/plan.h>

#include <cstdint>
#include <string>

namespace shardprop::cli {

// Option --local-args of commands that write plans.
Option local_args_option();

// Returns the text of the plan in the form that --local-args names.
std::string saved_plan(const Plan& plan, const Arguments& arguments);

// Reads a plan, gzipped or not. `place` names the file in errors, which are
// kPlanFile, kPlanSchemaVersion and kStopped.
Result<Plan> read_plan_file(const std::string& path, const std::string& place,
                            std::int64_t max_input,
                            Deadline deadline = std::nullopt);

}  // namespace shardprop::cli
