// A Plan as text for people: totals first, then parameters, then the modules as
// a tree with every redistribution under the module that asks for it. Repeated
// layers that are planned alike stand once: `layers.0..31 (x32)`.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// Ends in a newline. Not stable: scripts read plan_to_json().
std::string plan_to_text(const Plan& plan);

}  // namespace shardprop
