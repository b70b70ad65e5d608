// differences() lists the figures in which two plans of the same choices
// differ.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>
#include <vector>

namespace shardprop {

// Names each figure by its place in the file: "$.nodes[3].compute_us: 0 in the
// file, is 7". The list has at most 50 entries.
std::vector<std::string> differences(const Plan& saved, const Plan& plan);

}  // namespace shardprop
