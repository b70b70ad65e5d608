// make_plan(): the whole way from a graph to an explained plan.
//
//   Plan plan = *make_plan(graph, *DeviceMesh::parse("dp=2,tp=2"),
//                          default_topology(), *OpLibrary::standard(), {});
//   plan.status;             // PlanStatus::kOptimal
//   plan.copies[0].reason;   // "mm_1 takes it as R,S(1); ..."
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/plan/plan_problem.h>
#include <shardprop/plan/solve_plan.h>

namespace shardprop {

// Errors: those of PlanProblem::create(), and kProblemTooLarge and kOutOfMemory
// where they kept any plan from being found. That there is no plan, or that
// none was found in time, is not an error: the status says so.
Result<Plan> make_plan(const Graph& graph, const DeviceMesh& mesh,
                       const Topology& topology, const OpLibrary& library,
                       const PlanOptions& options);

// The plan that a solution says, with copies, schedule, memory and reasons.
Plan assemble_plan(const PlanProblem& problem, const PlanSolution& solution);

}  // namespace shardprop
