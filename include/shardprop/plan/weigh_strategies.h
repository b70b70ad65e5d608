// `weigh_strategies` computes the cost of each strategy of one operator in its
// graph. It also lists the dims that no strategy shards, with the reason.
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

// `WeighedStrategy` is one strategy with its own cost and that of its best
// plan.
struct WeighedStrategy {
  std::vector<Layout> takes;  // by input
  std::vector<Layout> makes;  // by result
  // Cost of the strategy itself: the compute of each rank, and the collectives
  // inside.
  std::int64_t compute_nanoseconds = 0;
  std::int64_t inside_nanoseconds = 0;
  bool chosen = false;  // by the plan
  // Cost of the best plan found that uses it; empty if none was found.
  std::optional<std::int64_t> objective_nanoseconds;
  // No plan that uses it costs less.
  std::int64_t lower_bound_nanoseconds = 0;
  // kOptimal among the plans that use it. kInfeasible: no plan that uses it
  // fits the memory. kUnknown: time ran out.
  PlanStatus status = PlanStatus::kUnknown;
};

// `UnshardedDim` is a dim of the operator's index space that no strategy shards
// over some mesh dims, or over any.
struct UnshardedDim {
  char letter = '?';  // its letter in `rule`
  std::int64_t size = 0;
  std::string why;  // "targets name its elements"
};

// `WeighedNode` is the result for one node: its strategies and unsharded dims.
struct WeighedNode {
  std::string rule;  // the index space, "ab,bc->ac {a=8,b=4,c=2}"
  PlanStatus status = PlanStatus::kUnknown;  // of the plan
  std::optional<std::int64_t> objective_nanoseconds;
  std::int64_t lower_bound_nanoseconds = 0;
  // The chosen strategy comes first, then the others by the cost of the plan;
  // strategies without a plan come last.
  std::vector<WeighedStrategy> strategies;
  std::vector<UnshardedDim> unsharded;
};

// Weighs the strategies of `node`. At most half of options.time_limit_seconds
// goes to the base plan. The rest is divided among the strategies, lowest
// compute plus inside cost first. Errors: kInvalidArgument if the node has no
// strategies (it views another value, or only asserts), and those of
// make_plan().
Result<WeighedNode> weigh_strategies(const Graph& graph, NodeId node,
                                     const DeviceMesh& mesh,
                                     const Topology& topology,
                                     const OpLibrary& library,
                                     const PlanOptions& options);

}  // namespace shardprop
