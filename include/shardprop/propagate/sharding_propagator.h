// ShardingPropagator: one operator at a time. Given how the inputs are laid
// out, how is the output laid out, and what must be moved first?
//
// Chosen is the strategy of least cost, which is what moving the inputs takes
// plus the collectives inside the operator. Among equal costs the one that
// moves fewest inputs wins, then the one that computes least, then the first.
// So inputs that already fit are never moved.
//
//   mm f32[16,8] S(1), f32[8,4] S(0) on [2]  ->  f32[16,4] P(sum), nothing
//   moved
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/op_cost.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

struct Propagation {
  std::vector<Layout> inputs;   // what each operand must be laid out as
  std::vector<Layout> outputs;  // what comes out
  std::vector<RankArgument> rank_arguments;
  std::vector<CollectiveStep> inside;
  std::int64_t redistribute_nanoseconds = 0;
  std::int64_t inside_nanoseconds = 0;
  std::int64_t compute_nanoseconds = 0;

  // What the choice went by.
  std::int64_t cost() const {
    return redistribute_nanoseconds + inside_nanoseconds;
  }
};

class ShardingPropagator {
 public:
  // Errors: those of
  // RedistributePlanner::create().
  static Result<ShardingPropagator> create(DeviceMesh mesh, Topology topology,
                                           std::shared_ptr<const OpLibrary> library);

  const DeviceMesh& mesh() const { return mesh_; }
  const Topology& topology() const { return topology_; }

  // Every strategy of the operator. Precondition: op.outputs filled in.
  // Errors: kNoStrategy.
  Result<OpStrategy> strategies(std::shared_ptr<const OpSchema> op,
                                LayoutTable& layouts,
                                const StrategyOptions& options = {}) const;

  // Precondition: op.outputs filled in, one valid layout per operand.
  // Errors: kNoStrategy, and those of RedistributePlanner::cost() where an
  // operand can be moved nowhere.
  Result<Propagation> propagate(std::shared_ptr<const OpSchema> op,
                                std::span<const Layout> inputs) const;

 private:
  ShardingPropagator(DeviceMesh mesh, Topology topology, std::shared_ptr<const OpLibrary> library, RedistributePlanner planner);

  DeviceMesh mesh_;
  Topology topology_;
  std::shared_ptr<const OpLibrary> library_;
  RedistributePlanner planner_;
};

}  // namespace shardprop
