// `lower` turns a plan and its graph into the program that the ranks run.
//
//   Plan plan = *make_plan(graph, mesh, topology, *library, {});
//   SpmdProgram program = *lower(plan, graph, *library);
//   to_string(program);      // mm f32[8,4] S(0) = aten.mm.default(...) ...
//
// Redistributed copies are produced and freed as the plan says. Local programs
// are inlined. If the plan has an optimizer, the program includes its step.
//
// A random operator becomes shardprop.random_bits followed by integer and float
// operators that compute the random numbers. The program then has one more
// input, the seed. Attention with dropout inside its kernel is an error.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/program/spmd_program.h>

namespace shardprop {

struct LowerOptions {
  // False: the program has only the forward and backward pass, for an optimizer
  // outside of it. Each gradient is redistributed like the updated parameter,
  // so it is an output in the parameter's layout:
  //
  //   w R   state S(0)      reduce_scatter(grad) -> update -> all_gather(w)
  //   without the step      reduce_scatter(grad) -> all_gather(grad)
  bool optimizer_step = true;
};

// Errors:
//
//   * kPlanOtherGraph: the plan is for another graph;
//   * kPlanNotRunnable: there is no plan, or it has schema 1, which does not
//     store how it runs;
//   * kPlanBroken: its parts do not fit each other or the graph, because it was
//     changed or made by another version;
//   * kNotLowered: an operator draws random numbers that are not defined by
//     element.
Result<SpmdProgram> lower(const Plan& plan, const Graph& graph,
                          const OpLibrary& library,
                          const LowerOptions& options = {});

// Returns the unsharded program, as one rank runs it. The results of the ranks
// are compared with it, including random numbers and the optimizer. Error:
// kNotLowered.
Result<SpmdProgram> lower_unsharded(const Graph& graph,
                                    const OpLibrary& library,
                                    Optimizer optimizer = Optimizer::kNone);

}  // namespace shardprop
