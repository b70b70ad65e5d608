// `plan_to_trace` writes a Plan as a timeline of one rank, in the Trace Event
// format of Perfetto (ui.perfetto.dev) and chrome://tracing.
//
//   {"traceEvents": [{"name": "mm_1", "ph": "X", "ts": 12.5, "dur": 7.0,
//                     "pid": 1, "tid": 1, "args": {...}}, ...]}
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// Returns the trace, which ends in a newline; times are in microseconds.
// Operators follow one another on the compute line, which ends at the plan's
// objective at the latest. Collectives have their own line, which ends no
// later. A collective begins when the plan needs it, or earlier if the line
// would otherwise exceed the step. Compute waits for the part of a collective
// that does not overlap.
std::string plan_to_trace(const Plan& plan);

}  // namespace shardprop
