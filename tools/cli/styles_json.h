// What PyTorch's own words say of a plan, as JSON, with what they leave unsaid
// and its price.
#pragma once

#include "cli/command.h"
#include "cli/graph_plan.h"

#include <string>
#include <string_view>

namespace shardprop::cli {

// `as`: tp-plan or fully-shard. The price is of the best plan with the
// parameters where the words put them, made with the options of the command, or
// with those of --plan.
// Errors: those of make_plan().
Result<std::string> styles_json(std::string_view as, const GraphPlan& given,
                                const Arguments& arguments);

}  // namespace shardprop::cli
