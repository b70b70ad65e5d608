// `ShardingPropagator` propagates layouts through one operator at a time: from
// the input layouts it computes the output layouts and the necessary
// redistributions.
//
// It chooses the strategy with the lowest cost, which is the cost of
// redistributing the inputs plus the collectives inside the operator.
// Tie-breaking: the fewest redistributed inputs, then the least compute, then
// the first of op_strategies(). So inputs that already fit are never
// redistributed. The choice is over all strategies; bounds avoid listing them,
// so meshes of five dims are fast too.
//
// A tensor that an operator writes (in place, out=) is never redistributed and
// keeps its layout. If no strategy keeps its layout, the call fails.
//
//   auto propagator = ShardingPropagator::create(mesh, topology, library);
//   propagator->propagate(mm, layouts)->outputs[0];
//   // mm f32[16,8] S(1), f32[8,4] S(0) on [2]  ->  f32[16,4] P(sum)
//
// Several threads may use one propagator at once; copies share its caches.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/propagate/output_sharding.h>
#include <shardprop/strategy/op_cost.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

// `ImplicitMoves` says how a call is treated whose inputs must be
// redistributed.
enum class ImplicitMoves : std::uint8_t {
  kAllowed,
  kReported,   // calls `report`; the answer is the same
  kForbidden,  // the call fails: kNoStrategy
};

// `PropagatorOptions` say how calls with implicit moves are treated.
struct PropagatorOptions {
  ImplicitMoves moves = ImplicitMoves::kAllowed;
  // Called on the thread of the call, before the call returns.
  std::function<void(const OpSchema&, const OutputSharding&)> report;
};

class ShardingPropagator {
 public:
  // Errors: those of RedistributePlanner::create(); kInvalidArgument (kReported
  // without `report`, no library).
  static Result<ShardingPropagator> create(
      DeviceMesh mesh, Topology topology,
      std::shared_ptr<const OpLibrary> library, PropagatorOptions options = {});

  const DeviceMesh& mesh() const;
  const Topology& topology() const;
  const std::shared_ptr<const OpLibrary>& library() const;
  const PropagatorOptions& options() const;
  // Returns a propagator with other operators.
  ShardingPropagator with_library(
      std::shared_ptr<const OpLibrary> library) const;

  // Computes how `op` runs on one layout per operand, on mesh(). The outputs of
  // `op` are inferred unless they are filled in; if the library cannot infer
  // them, they must be filled in. Errors:
  //
  //   * kNoStrategy: no row; a written tensor cannot keep its layout; or inputs
  //     must move and moves are forbidden;
  //   * kShapeMismatch, kNoShapeInference, kOutOfMemory;
  //   * kInvalidArgument: the number of layouts differs from the number of
  //     operands;
  //   * those of check_layout(), and those of RedistributePlanner::plan() if an
  //     operand cannot be redistributed.
  Result<OutputSharding> propagate(const OpSchema& op,
                                   std::span<const Layout> inputs) const;
  // Computes the same for specs. Additional errors: kRedistributeMeshes (a spec
  // is not on mesh()), kShapeMismatch (a spec is not the operand's).
  Result<OutputSharding> propagate(const OpSchema& op,
                                   std::span<const TensorSpec> inputs) const;

  // Returns every strategy with its cost for these inputs: first the one that
  // propagate() chooses, then the others by cost, then the impossible ones.
  // Errors: as propagate(), except those for written tensors and forbidden
  // moves.
  Result<std::vector<Candidate>> candidates(
      const OpSchema& op, std::span<const Layout> inputs,
      const StrategyOptions& options = {}) const;

  // Returns the strategy that the ranks run. `sharding` is an answer for a call
  // like `op`.
  Result<std::shared_ptr<const LocalStrategy>> local_strategy(
      const OpSchema& op, const OutputSharding& sharding) const;

  // Returns every strategy of the operator. Errors: kNoStrategy,
  // kShapeMismatch.
  Result<OpStrategy> strategies(const OpSchema& op, LayoutTable& layouts,
                                const StrategyOptions& options = {}) const;

 private:
  friend class CachingPropagator;
  struct Body;
  explicit ShardingPropagator(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

// Describes the implicit redistributions for a report or an error: "input 1
// `mat2`: S(0) -> R, 1 collective, 12.4 us".
std::string describe_moves(const OpSchema& op, std::span<const Layout> given,
                           const OutputSharding& sharding);

}  // namespace shardprop
