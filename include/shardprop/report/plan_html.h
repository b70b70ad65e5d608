// A Plan as a page for a browser: one file, without scripts, that fetches
// nothing.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// The text of plan_to_text(), then where the time goes, every transfer dearest
// first with its reason, every parameter and input, and the operators of each
// module. Names are escaped. Ends in a newline.
std::string plan_to_html(const Plan& plan);

}  // namespace shardprop
