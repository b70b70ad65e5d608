// The text of plans that `explain --format json` and `emit` write.
#pragma once

#include "cli/command.h"

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop::cli {

// Option --local-args of commands that write plans.
Option local_args_option();

// Returns the text of the plan in the form that --local-args names.
std::string saved_plan(const Plan& plan, const Arguments& arguments);

}  // namespace shardprop::cli
