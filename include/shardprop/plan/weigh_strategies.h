// weigh_strategies(): what each strategy of one operator would cost in its
// graph, and which dims no strategy shards, and why.
//
//   NodeId node = *graph.find_node("mm_1");
//   WeighedNode why = *weigh_strategies(graph, node, mesh, default_topology(),
//                                       *OpLibrary::standard(), {});
//   why.strategies[0].chosen;                  // true
//   why.strategies[1].objective_nanoseconds;   // of the best plan that uses it
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/placement/layout.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

struct WeighedStrategy {
  std::vector<Layout> takes;  // by input
  std::vector<Layout> makes;  // by result
  // Where it stands: what each rank computes, and the collectives inside.
  std::int64_t compute_nanoseconds = 0;
  std::int64_t inside_nanoseconds = 0;
  bool chosen = false;  // by the plan
  // Of the best whole plan found that uses it; empty where none was.
  std::optional<std::int64_t> objective_nanoseconds;
  // No plan that uses it costs less.
  std::int64_t lower_bound_nanoseconds = 0;
  // Optimal among the plans that use it; infeasible: none that does fits the
  // memory; unknown: time ran out.
  PlanStatus status = PlanStatus::kUnknown;
};

// A dim of the operator's index space that no strategy shards over some mesh
// dims, or over any.
struct UnshardedDim {
  char letter = '?';  // as `rule` writes it
  std::int64_t size = 0;
  std::string why;  // "targets name its elements"
};

struct WeighedNode {
  std::string rule;  // the index space, "ab,bc->ac {a=8,b=4,c=2}"
  PlanStatus status = PlanStatus::kUnknown;  // of the plan
  std::optional<std::int64_t> objective_nanoseconds;
  std::int64_t lower_bound_nanoseconds = 0;
  // The chosen one first, then by the cost of the plan, those without at last.
  std::vector<WeighedStrategy> strategies;
  std::vector<UnshardedDim> unsharded;
};

// The plan takes at most half of options.time_limit_seconds, strategies share
// what is left, those first that cost least where they stand.
// Errors: kInvalidArgument where the node has no strategies of its own (it
// views another value, or only asserts), and those of make_plan().
Result<WeighedNode> weigh_strategies(const Graph& graph, NodeId node,
                                     const DeviceMesh& mesh,
                                     const Topology& topology,
                                     const OpLibrary& library,
                                     const PlanOptions& options);

}  // namespace shardprop
