// A Plan as a graph for Graphviz: `dot -Tsvg plan.dot`.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// An operator a box with the layouts of its results, modules around them; an
// edge for each value that is taken, with what it is redistributed to in red.
// Ends in a newline.
std::string plan_to_dot(const Plan& plan);

}  // namespace shardprop
