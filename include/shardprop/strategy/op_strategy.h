// OpStrategy: all the ways to run one operator on a mesh; PlacementStrategy:
// one of them.
//
// The space of strategies is closed and named. Each mesh dim is given
//   * to one factor of the index space that may be sharded, or
//   * to one linearity (partials that pass through), or
//   * to nothing: the operator runs alike on all ranks of that mesh dim.
// Mesh dims given to the same factor cut it in mesh order, outermost first.
// The layout of every operand follows; strided shards and other shard orders
// arise where a dim is made of several factors. Kept are the assignments where
// every operand's layout is valid (no mixed partials, reductions defined on
// the dtype) and exact under the shard sizes at hand.
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
#include <shardprop/strategy/layout_table.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace shardprop {

// What each mesh dim is given to: -1 nothing, below factors.size() a factor,
// from there on a linearity.
using Assignment = InlineVector<std::int16_t, 5>;
inline constexpr std::int16_t kUnassigned = -1;

struct PlacementStrategy {
  Assignment assignment;
  InlineVector<LayoutId, 4> inputs;   // what each operand must be laid out as
  InlineVector<LayoutId, 4> outputs;  // what comes out
};

struct OpStrategy {
  std::shared_ptr<const OpSchema> op;
  std::shared_ptr<const IndexSpace> space;
  std::vector<PlacementStrategy> strategies;  // never empty: all replicated
  bool truncated = false;                     // more than options.limit
};

struct StrategyOptions {
  // Strategies that leave some rank without any elements of a factor.
  bool allow_empty_shards = true;
  // Strategies whose shards differ in size.
  bool allow_uneven = true;
  // Operands laid out in strided shards.
  bool allow_strided = true;
  // Operands that mesh dims cut in another order than their own.
  bool allow_shard_orders = true;
  // On meshes of more than three dims larger than 1: the assignments where
  // those dims fall into at most r runs of neighbours given to the same, r the
  // most that leaves this many assignments, and at least 2.
  std::optional<std::int64_t> most_assignments;
  // The assignments where the mesh dims larger than 1 fall into at most so many
  // runs of neighbours given to the same; 0: the one that gives them to
  // nothing.
  std::optional<int> most_runs;
  // Bit m: only assignments in which mesh dim m and the mesh dim before it are
  // given to the same factor. Mesh dims of size 1 are not counted.
  std::uint32_t joined_dims = 0;
  std::size_t limit = 100'000;
};

// Every strategy of the space, in a fixed order: assignments counted with the
// last mesh dim fastest, nothing first. No two have the same layouts.
// Precondition: op.outputs is filled in.
OpStrategy op_strategies(std::shared_ptr<const OpSchema> op,
                         std::shared_ptr<const IndexSpace> space,
                         const DeviceMesh& mesh, LayoutTable& layouts,
                         const StrategyOptions& options = {});

// The strategy in words: "S(0),R->S(0)"; operands separated by commas between
// brackets on meshes of several dims: "[S(0),R],[R,R]->[S(0),R]".
std::string to_string(const PlacementStrategy& strategy,
                      const LayoutTable& layouts);

}  // namespace shardprop
