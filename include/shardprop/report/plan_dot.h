// `plan_to_dot` writes a Plan as a graph for Graphviz: `dot -Tsvg plan.dot`.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// Returns the text, which ends in a newline. Each operator is a box with the
// layouts of its results, inside boxes for its modules. Each value that is read
// is an edge; the target layout of a redistribution is shown in red.
std::string plan_to_dot(const Plan& plan);

}  // namespace shardprop
