// ShardingPropagator::Body stores the state of a propagator; CachingPropagator
// uses it too.
#pragma once

#include "ops/space/foreach.h"
#include "propagate/bound_op.h"
#include "propagate/strategy_search.h"

#include <shardprop/propagate/sharding_propagator.h>

#include <memory>
#include <utility>

namespace shardprop {

struct ShardingPropagator::Body {
  Body(DeviceMesh the_mesh, Topology the_topology,
       std::shared_ptr<const OpLibrary> the_library,
       PropagatorOptions the_options,
       std::shared_ptr<CachingPlanner> the_planner)
      : mesh(std::move(the_mesh)),
        topology(std::move(the_topology)),
        library(std::move(the_library)),
        options(std::move(the_options)),
        planner(std::move(the_planner)),
        bound(topology, mesh),
        calls(library, mesh) {}

  SearchContext context() const {
    return {mesh, topology, *planner, bound, recent};
  }

  // Answer is the result before the guard checks it.
  struct Answer {
    OutputSharding sharding;
    std::shared_ptr<const BoundOp> call;
    bool is_only_fit = false;
  };
  Result<Answer> answer(const OpSchema& op,
                        std::span<const Layout> inputs) const;
  // Does the same for an operator on lists, element by element. `arguments` holds, for
  // each argument of `op`, the index of the argument of an element's operator.
  Result<Answer> answer_of_list(const OpSchema& op,
                                std::span<const ElementCall> elements,
                                std::span<const std::size_t> arguments,
                                std::span<const Layout> inputs) const;
  // Errors: kInvalidArgument, those of check_layout().
  Result<void> check_inputs(const OpSchema& op,
                            std::span<const Layout> inputs) const;

  DeviceMesh mesh;
  Topology topology;
  std::shared_ptr<const OpLibrary> library;
  PropagatorOptions options;
  std::shared_ptr<CachingPlanner> planner;
  MoveBound bound;
  mutable BoundOps calls;
  mutable redistribute::RecentReaches recent;
};

// Returns the layouts of specs on `mesh`. Errors: kRedistributeMeshes,
// kShapeMismatch.
Result<std::vector<Layout>> layouts_on(const DeviceMesh& mesh,
                                       const OpSchema& op,
                                       std::span<const TensorSpec> inputs);

// Returns the spec of a layout that a strategy chose. Throws InternalError if
// the layout does not fit the tensor.
Result<TensorSpec> spec_of(const DeviceMesh& mesh, const Layout& layout,
                           const TensorMeta& meta);

// Returns whether the guard applies to the answer.
inline bool sees_moves(const PropagatorOptions& options,
                       const OutputSharding& sharding) {
  return options.moves != ImplicitMoves::kAllowed && !sharding.moves.empty();
}

// Applies a guard to an answer. Error: kNoStrategy.
Result<void> guard_moves(const PropagatorOptions& options, const OpSchema& op,
                         std::span<const Layout> given,
                         const OutputSharding& sharding);

}  // namespace shardprop
