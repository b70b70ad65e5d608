// This file writes a plan as settings of PyTorch, with the layouts that these
// cannot express and their price.
#pragma once

#include "cli/command.h"
#include "cli/graph_plan.h"

#include <string>
#include <string_view>
#include <vector>

namespace shardprop::cli {

// `as`: tp-plan or fully-shard. The price belongs to the best plan whose
// parameters have the layouts of the settings. It is solved with the options of
// the command, or with those of --plan. Errors: those of make_plan().
struct StylesJson {
  std::string text;
  std::vector<std::string> notes;  // as in the text
};
Result<StylesJson> styles_json(std::string_view as, const GraphPlan& given,
                               const Arguments& arguments);

// Returns whether a text is that of styles_json() for `as`.
bool is_styles_json(std::string_view text, std::string_view as);

}  // namespace shardprop::cli
