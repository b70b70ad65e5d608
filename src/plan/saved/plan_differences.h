// differences() lists the figures in which two plans of the same choices
// differ.
#pragma once

#include <shardprop/plan/plan.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// Returns whether the saved plan states no overlap windows or no buckets, and the
// plan has some. An earlier version saved it, whose transfers ran otherwise.
bool is_of_other_schedule(const Plan& saved, const Plan& plan);

// Returns, by copy of the plan, the copy of the saved plan of the same value from
// and to the same layouts. Both plans may list their copies in another order.
std::vector<std::optional<std::size_t>> saved_copies(const Plan& saved,
                                                     const Plan& plan);

// Names each figure by its place in the file: "$.nodes[3].compute_us: 0 in the
// file, is 7". The list has at most 50 entries. If is_of_other_schedule(), it
// leaves out what depends on the schedule: time, status, bytes over time, and
// which copies there are in which order.
std::vector<std::string> differences(const Plan& saved, const Plan& plan);

}  // namespace shardprop
