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

// Returns whether the saved plan has one load for all micro-batches in each window,
// and the plan has several. An earlier version saved it. Its time is lower if a
// transfer once a step takes longer than the compute of one micro-batch.
bool has_undivided_windows(const Plan& saved, const Plan& plan);

// Returns, by copy of the plan, the copy of the saved plan of the same value from
// and to the same layouts. Both plans may list their copies in another order.
std::vector<std::optional<std::size_t>> saved_copies(const Plan& saved,
                                                     const Plan& plan);

// Names each figure by its place in the file: "$.nodes[3].compute_us: 0 in the
// file, is 7". The list has at most 50 entries. If is_of_other_schedule() or
// has_undivided_windows(), it leaves out what depends on the schedule: time,
// status, bytes over time, and which copies there are in which order. If
// has_undivided_windows(), the time of a copy's step may also differ by 1 ns,
// because its share of a micro-batch is rounded in another way.
std::vector<std::string> differences(const Plan& saved, const Plan& plan);

}  // namespace shardprop
