// `verify --rank-programs`: verifies programs that shardprop did not plan.
#pragma once

#include "cli/command.h"

#include <shardprop/verify/verify.h>

namespace shardprop::cli {

// Reads the graph and the folder of --rank-programs, compares them and prints
// the report. Errors: kInvalidArgument (an option that needs a plan), those of
// load_graph(), load_rank_programs() and verify_rank_programs().
Result<int> verify_folder(const Arguments& arguments,
                          const VerifyOptions& options, Console& console);

}  // namespace shardprop::cli
