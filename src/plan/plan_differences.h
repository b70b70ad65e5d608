// The figures in which two plans of the same choices differ.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>
#include <vector>

namespace shardprop {

// By their place in the file: "$.nodes[3].compute_us: 0 in the file, is 7". At
// most some tens of them.
std::vector<std::string> differences(const Plan& saved, const Plan& plan);

}  // namespace shardprop
