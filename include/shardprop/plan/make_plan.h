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

namespace shardprop {

// Errors: those of validate() and check_topology(), kNoStrategy
// (options.strict), kPinMatchesNothing, kPinDoesNotFit, kPinNoStrategy,
// kPinConflict, kRedistributeMeshTooLarge (a tensor has too many layouts on the
// mesh), those of RedistributePlanner::create(), and kStopped, kProblemTooLarge
// and kOutOfMemory where they kept any plan from being found. That there is no
// plan, or that none was found in time, is not an error: the status says so.
Result<Plan> make_plan(const Graph& graph, const DeviceMesh& mesh,
                       const Topology& topology, const OpLibrary& library,
                       const PlanOptions& options);

}  // namespace shardprop
