// A Plan as a timeline of one rank, in the Trace Event format that Perfetto
// (ui.perfetto.dev) and chrome://tracing open.
//
//   {"traceEvents": [{"name": "mm_1", "ph": "X", "ts": 12.5, "dur": 7.0,
//                     "pid": 1, "tid": 1, "args": {...}}, ...]}
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// Operators follow one another on the line of compute, which ends at the plan's
// objective at the latest. Collectives have a line of their own, which ends no
// later. A collective begins where the plan needs it, or before, if the line
// would outlast the step otherwise. Compute waits for the part of a collective
// that does not overlap. Times are in microseconds. Ends in a newline.
std::string plan_to_trace(const Plan& plan);

}  // namespace shardprop
