// `OpStrategy` is the set of all strategies of one operator on a mesh;
// `PlacementStrategy` is one of them.
//
// The space of strategies is closed. Each mesh dim is assigned
//   * to one factor of the index space that may be sharded, or
//   * to one linearity (partials that pass through), or
//   * to no target: the ranks of that mesh dim replicate the compute.
// Mesh dims assigned to the same factor shard it in mesh order, outermost
// first, unless the strategy has another FactorSharding. The layouts of all
// operands follow; a dim with several factors can have strided shards or
// another shard order. An assignment is a strategy if every operand's layout is
// valid (no mixed partials, reductions defined on the dtype) and exact for the
// given shard sizes.
//
//   mm f32[16,8], f32[8,4] on [2]:
//     S(0),R->S(0)  R,S(1)->S(1)  S(1),S(0)->P(sum)
//     P(sum),R->P(sum)  R,P(sum)->P(sum)  P(avg),R->P(avg) ...  R,R->R
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/placement/layout.h>
#include <shardprop/strategy/factor_sharding.h>
#include <shardprop/strategy/layout_table.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace shardprop {

// `Assignment` has one entry per mesh dim: -1 for no target, an index below
// factors.size() for a factor, and larger indices for linearities.
using Assignment = InlineVector<std::int16_t, 5>;
inline constexpr std::int16_t kUnassigned = -1;

struct PlacementStrategy {
  Assignment assignment;
  // FactorShardings::of_all(); invalid for mesh order.
  LayoutId shardings;
  InlineVector<LayoutId, 4> inputs;   // required layout of each operand
  InlineVector<LayoutId, 4> outputs;  // layout of each result
};

struct OpStrategy {
  std::shared_ptr<const OpSchema> op;
  std::shared_ptr<const IndexSpace> space;
  // Never empty: has the replicated one.
  std::vector<PlacementStrategy> strategies;
  bool truncated = false;  // there are more than options.limit
};

// `OfferedSharding` is a sharding that strategies may use besides mesh order.
struct OfferedSharding {
  FactorSharding sharding;
  // The factor that may have it; empty for every factor that is given exactly
  // its mesh dims.
  std::optional<int> factor;
};

// `StrategyOptions` restrict the strategies that op_strategies() lists.
struct StrategyOptions {
  // Includes strategies that leave some rank without elements of a factor.
  bool allow_empty_shards = true;
  // Includes strategies whose shards differ in size.
  bool allow_uneven = true;
  // Includes strategies with strided operands.
  bool allow_strided = true;
  // Includes strategies whose operands have a shard order other than the mesh
  // order.
  bool allow_shard_orders = true;
  // Maximum number of assignments on meshes with more than three dims larger
  // than 1; no limit if empty. Adjacent mesh dims with the same target form a
  // run. Only assignments of at most r runs are listed. r is the largest number
  // of runs, and at least 2, that keeps to the maximum.
  std::optional<std::int64_t> most_assignments;
  // Maximum number of runs of mesh dims larger than 1; no limit if empty. A run
  // is adjacent mesh dims with the same target. 0 leaves only the assignment in
  // which no mesh dim has a target.
  std::optional<int> most_runs;
  // Bit m: mesh dim m must have the same factor as the mesh dim before it. Mesh
  // dims of size 1 are not counted.
  std::uint32_t joined_dims = 0;
  // Factor shardings that are listed besides mesh order. Factors whose
  // positions matter to the operator stay in mesh order.
  std::vector<OfferedSharding> shardings;
  std::size_t limit = 100'000;
};

// Returns every strategy of the space, in a fixed order: assignments are
// counted with the last mesh dim fastest, and "no target" comes first. The
// strategy in mesh order comes before others of the same assignment. No two
// strategies have the same layouts. Precondition: op.outputs is filled in.
OpStrategy op_strategies(std::shared_ptr<const OpSchema> op,
                         std::shared_ptr<const IndexSpace> space,
                         const DeviceMesh& mesh, LayoutTable& layouts,
                         const StrategyOptions& options = {});

// Prints the strategy: "S(0),R->S(0)". On meshes of several dims operands are
// in brackets: "[S(0),R],[R,R]->[S(0),R]".
std::string to_string(const PlacementStrategy& strategy,
                      const LayoutTable& layouts);

}  // namespace shardprop
