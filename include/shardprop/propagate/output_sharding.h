// `OutputSharding` describes how one operator runs on sharded tensors: the
// required input layouts, the redistributions, and the output layouts.
//
//   mm f32[16,8] S(1), f32[8,4] R on [2]
//     inputs   f32[16,8] S(1), f32[8,4] S(0)
//     moves    input 1: slice R -> S(0), nothing sent
//     outputs  f32[16,4] P(sum)
#pragma once

#include <shardprop/placement/tensor_spec.h>
#include <shardprop/redistribute/redistribute_plan.h>
#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop {

// `InputMove` is an input that must be redistributed before the operator runs.
struct InputMove {
  std::size_t input = 0;
  std::shared_ptr<const RedistributePlan> plan;  // never null
};

struct OutputSharding {
  // Specs that the operator requires, one per operand. An operand without a
  // move has the given spec.
  std::vector<TensorSpec> inputs;
  // Specs of the results; `output_slots` is as in OpSchema.
  std::vector<TensorSpec> outputs;
  std::vector<std::int32_t> output_slots;
  // Redistributions in the order of the inputs; empty if all inputs fit.
  std::vector<InputMove> moves;

  // Each rank runs the operator on its local tensors, with these arguments in
  // place of the given ones. If there are collectives inside, it runs a program
  // instead: ShardingPropagator::local_strategy() returns it.
  std::vector<RankArgument> rank_arguments;
  std::vector<CollectiveStep> inside;
  // The target of each mesh dim. There is one assignment, or one per element of
  // an operator on lists (foreach, the fused step of an optimizer), whose elements are
  // propagated separately.
  std::vector<Assignment> assignments;
  // The shardings of factors, one entry per assignment.
  std::vector<FactorShardings> shardings;

  std::int64_t redistribute_nanoseconds = 0;
  std::int64_t inside_nanoseconds = 0;

  // Returns the cost by which the strategy was chosen, in nanoseconds.
  std::int64_t cost() const {
    return redistribute_nanoseconds + inside_nanoseconds;
  }
};

// `Candidate` is one strategy that was considered.
struct Candidate {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  Assignment assignment;
  FactorShardings shardings;
  std::int64_t redistribute_nanoseconds = 0;
  std::int64_t inside_nanoseconds = 0;
  std::int64_t compute_nanoseconds = 0;
  int moved_inputs = 0;
  bool possible = true;
  // Reason why it was not chosen or is impossible; empty for the chosen one.
  std::string why_not;

  std::int64_t cost() const {
    return redistribute_nanoseconds + inside_nanoseconds;
  }
};

// `LocalStrategy` is a strategy with everything to which its local program
// refers.
class LocalStrategy {
 public:
  LocalStrategy(std::shared_ptr<const OpSchema> op,
                std::shared_ptr<const IndexSpace> space,
                const OutputSharding& sharding, DeviceMesh mesh);

  const OpSchema& op() const { return *op_; }
  // Returns a context that is valid while this object exists and is not moved.
  LocalContext context() const {
    return {*op_, *space_, mesh_, layouts_, strategy_};
  }
  // Returns what each rank runs; evaluate() computes scalars from context().
  LocalProgram program() const { return local_program(context()); }
  bool needs_program() const { return shardprop::needs_program(context()); }

 private:
  std::shared_ptr<const OpSchema> op_;
  std::shared_ptr<const IndexSpace> space_;
  DeviceMesh mesh_;
  LayoutTable layouts_;
  PlacementStrategy strategy_;
};

}  // namespace shardprop
