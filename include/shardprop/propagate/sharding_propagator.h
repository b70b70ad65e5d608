// ShardingPropagator: one operator at a time. Given how the inputs are laid
// out, how is the output laid out, and what must be moved first?
//
// Chosen is the strategy of least cost, which is what moving the inputs takes
// plus the collectives inside the operator. Among equal costs the one that
// moves fewest inputs wins, then the one that computes least, then the first of
// op_strategies(). So inputs that already fit are never moved. The choice is
// over all strategies, found by bound and without listing them: meshes of five
// dims are no reason to wait.
//
// What an operator writes (in place, out=) is never moved and keeps its layout;
// where no strategy leaves it so the call fails.
//
//   auto propagator = ShardingPropagator::create(mesh, topology, library);
//   propagator->propagate(mm, layouts)->outputs[0];
//   // mm f32[16,8] S(1), f32[8,4] S(0) on [2]  ->  f32[16,4] P(sum)
//
// Safe to use from several threads at once; copies share what they remember.
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

// What becomes of a call whose inputs must be moved.
enum class ImplicitMoves : std::uint8_t {
  kAllowed,
  kReported,   // `report` is called; the answer is the same
  kForbidden,  // the call fails: kNoStrategy
};

struct PropagatorOptions {
  ImplicitMoves moves = ImplicitMoves::kAllowed;
  // Called on the thread of the call, before it returns.
  std::function<void(const OpSchema&, const OutputSharding&)> report;
};

class ShardingPropagator {
 public:
  // Errors: those of RedistributePlanner::create(); kInvalidArgument (moves are
  // reported to nobody, no library).
  static Result<ShardingPropagator> create(
      DeviceMesh mesh, Topology topology,
      std::shared_ptr<const OpLibrary> library, PropagatorOptions options = {});

  const DeviceMesh& mesh() const;
  const Topology& topology() const;
  const std::shared_ptr<const OpLibrary>& library() const;
  const PropagatorOptions& options() const;
  // The same with other operators.
  ShardingPropagator with_library(
      std::shared_ptr<const OpLibrary> library) const;

  // One layout per operand, on mesh(). The outputs of `op` follow from its
  // arguments unless they are filled in (what the library cannot infer must
  // be). Errors: kNoStrategy (no row; a tensor that is written cannot keep its
  // layout; inputs would move where that is forbidden), kShapeMismatch,
  // kNoShapeInference; kInvalidArgument (not one layout per operand); those of
  // check_layout(); those of RedistributePlanner::plan() where an operand can
  // be moved nowhere; kOutOfMemory.
  Result<OutputSharding> propagate(const OpSchema& op,
                                   std::span<const Layout> inputs) const;
  // The same of specs. Errors: also kRedistributeMeshes (one is not on mesh()),
  // kShapeMismatch (one is not the operand's).
  Result<OutputSharding> propagate(const OpSchema& op,
                                   std::span<const TensorSpec> inputs) const;

  // Every strategy priced for these inputs, the one that propagate() takes
  // first, then by what they would cost, then those that are not possible.
  // Errors: as propagate(), but for what is written and forbidden moves.
  Result<std::vector<Candidate>> candidates(
      const OpSchema& op, std::span<const Layout> inputs,
      const StrategyOptions& options = {}) const;

  // What the ranks run. `sharding` is an answer for a call like `op`.
  Result<std::shared_ptr<const LocalStrategy>> local_strategy(
      const OpSchema& op, const OutputSharding& sharding) const;

  // Every strategy of the operator. Errors: kNoStrategy, kShapeMismatch.
  Result<OpStrategy> strategies(const OpSchema& op, LayoutTable& layouts,
                                const StrategyOptions& options = {}) const;

 private:
  friend class CachingPropagator;
  struct Body;
  explicit ShardingPropagator(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
};

// What an implicit redistribution comes to, in words, for a report or an error:
// "input 1 `mat2`: S(0) -> R, 1 collective, 12.4 us".
std::string describe_moves(const OpSchema& op, std::span<const Layout> given,
                           const OutputSharding& sharding);

}  // namespace shardprop
