// differences() lists the figures in which two plans of the same choices
// differ.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>
#include <vector>

namespace shardprop {

// Returns whether the saved plan states no overlap windows, and the plan has
// some. An earlier version saved it, whose transfers overlapped otherwise.
bool is_of_other_schedule(const Plan& saved, const Plan& plan);

// Names each figure by its place in the file: "$.nodes[3].compute_us: 0 in the
// file, is 7". The list has at most 50 entries. If is_of_other_schedule(), it
// leaves out figures that depend on the schedule: time, status, bytes over time
// and copies for one reader.
std::vector<std::string> differences(const Plan& saved, const Plan& plan);

}  // namespace shardprop
