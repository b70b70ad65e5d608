// lower(): from a plan and its graph to the program that the ranks run.
//
//   Plan plan = *make_plan(graph, mesh, topology, *library, {});
//   SpmdProgram program = *lower(plan, graph, *library);
//   to_string(program);      // mm f32[8,4] S(0) = aten.mm.default(...) ...
//
// Copies are made and dropped as the plan says; local programs stand in line;
// the optimizer's step, where one is planned, is part of the program.
//
// Random operators draw shardprop.random_bits and make of it, in operators on
// integers and floats, what they would have drawn: the program then takes one
// input more, the seed. Attention with dropout inside its kernel is refused.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/program/spmd_program.h>

namespace shardprop {

struct LowerOptions {
  // False: forward and backward pass alone, for an optimizer outside of the
  // program. A gradient then takes the copies that bring the updated parameter
  // to its layout, and is an output in the parameter's layout:
  //
  //   w R   state S(0)      reduce_scatter(grad) -> update -> all_gather(w)
  //   without the step      reduce_scatter(grad) -> all_gather(grad)
  bool optimizer_step = true;
};

// Errors: kPlanOtherGraph; kPlanNotRunnable (there is no plan, or it is of
// schema 1, which does not say how it runs); kPlanBroken (its parts do not fit
// each other or the graph: it was changed, or made by another version);
// kNotLowered (an operator that draws what cannot be drawn by element).
Result<SpmdProgram> lower(const Plan& plan, const Graph& graph,
                          const OpLibrary& library,
                          const LowerOptions& options = {});

// The unsharded program, as one rank runs it: what the ranks' results are
// compared with, random numbers and optimizer included. Error: kNotLowered.
Result<SpmdProgram> lower_unsharded(const Graph& graph,
                                    const OpLibrary& library,
                                    Optimizer optimizer = Optimizer::kNone);

}  // namespace shardprop
