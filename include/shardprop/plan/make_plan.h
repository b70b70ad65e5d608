// `make_plan` makes an explained plan from a graph.
//
//   Plan plan = *make_plan(graph, *DeviceMesh::parse("dp=2,tp=2"),
//                          default_topology(), *OpLibrary::standard(), {});
//   plan.status;             // PlanStatus::kOptimal
//   plan.copies[0].reason;   // user mm_1, wanted R,S(1), ...
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

namespace shardprop {

// Makes a plan. An infeasible problem, or no plan within the time limit, is not
// an error: Plan::status reports it. Errors:
//
//   * those of validate(), check_topology() and RedistributePlanner::create();
//   * kNoStrategy (options.strict);
//   * kPinMatchesNothing, kPinDoesNotFit, kPinNoStrategy, kPinConflict;
//   * kRedistributeMeshTooLarge: a tensor has too many layouts on the mesh;
//   * kStopped, kProblemTooLarge and kOutOfMemory if they prevented any plan.
Result<Plan> make_plan(const Graph& graph, const DeviceMesh& mesh,
                       const Topology& topology, const OpLibrary& library,
                       const PlanOptions& options);

}  // namespace shardprop
