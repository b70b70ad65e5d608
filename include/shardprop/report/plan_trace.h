// A Plan as a timeline of one rank, in the Trace Event format that Perfetto
// (ui.perfetto.dev) and chrome://tracing open.
//
//   {"traceEvents": [{"name": "mm_1", "ph": "X", "ts": 12.5, "dur": 7.0,
//                     "pid": 1, "tid": 1, "args": {...}}, ...]}
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// Operators one behind another on the line of compute, which ends at the plan's
// objective; collectives on a line of their own, begun where the plan makes
// them. Compute waits for the part of them that does not hide. Microseconds.
// Ends in a newline.
std::string plan_to_trace(const Plan& plan);

}  // namespace shardprop
