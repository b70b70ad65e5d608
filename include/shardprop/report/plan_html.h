// `plan_to_html` writes a Plan as one HTML file, without scripts or external
// resources.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// Returns the page, which ends in a newline. It has the text of plan_to_text(),
// the distribution of time, every transfer with its reason (costliest first),
// every parameter and input, and the operators of each module. Names are
// escaped.
std::string plan_to_html(const Plan& plan);

}  // namespace shardprop
