// `program_prices` returns the prices of a plan for the steps of its program, so
// that program_time() can be compared with the plan's objective:
//
//   const SpmdProgram program = *lower(plan, graph, *library);
//   program_time(program, program_prices(plan)) == *plan.objective_nanoseconds;
//
// If the plan gathers parameters after their update, the time is larger by at
// most the `overlapped_nanoseconds` of these copies. Their price overlaps with
// the next step, and the program of one step waits for them.
#pragma once

#include <shardprop/plan/plan.h>
#include <shardprop/program/program_time.h>

namespace shardprop {

// Precondition: the plan has a plan to run.
ProgramPrices program_prices(const Plan& plan);

}  // namespace shardprop
