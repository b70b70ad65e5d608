// OutputSharding: how one operator runs on tensors that are laid out: what its
// inputs must be, what must be moved for it, what comes out.
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

// An input that must be redistributed before the operator runs.
struct InputMove {
  std::size_t input = 0;
  std::shared_ptr<const RedistributePlan> plan;  // never null
};

struct OutputSharding {
  // As the operator needs them, one per operand; those without a move are as
  // they were given.
  std::vector<TensorSpec> inputs;
  // What it returns; output_slots as in OpSchema.
  std::vector<TensorSpec> outputs;
  std::vector<std::int32_t> output_slots;
  // In the order of the inputs; empty where all of them fit.
  std::vector<InputMove> moves;

  // What each rank runs is the operator on its local tensors with these
  // arguments in place of the given ones and, where there are collectives
  // inside, a program: ShardingPropagator::local_strategy() writes it out.
  std::vector<RankArgument> rank_arguments;
  std::vector<CollectiveStep> inside;
  // What each mesh dim is given to: one, or one per element of an operator on
  // lists (foreach), whose elements are propagated each for itself.
  std::vector<Assignment> assignments;

  std::int64_t redistribute_nanoseconds = 0;
  std::int64_t inside_nanoseconds = 0;

  // What the choice went by.
  std::int64_t cost() const {
    return redistribute_nanoseconds + inside_nanoseconds;
  }
};

// One way that was considered.
struct Candidate {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  Assignment assignment;
  std::int64_t redistribute_nanoseconds = 0;
  std::int64_t inside_nanoseconds = 0;
  std::int64_t compute_nanoseconds = 0;
  int moved_inputs = 0;
  bool possible = true;
  // Why it was not taken, or is not possible; empty of the one that was.
  std::string why_not;

  std::int64_t cost() const {
    return redistribute_nanoseconds + inside_nanoseconds;
  }
};

// A strategy with all that its local program refers to.
class LocalStrategy {
 public:
  LocalStrategy(std::shared_ptr<const OpSchema> op,
                std::shared_ptr<const IndexSpace> space,
                const OutputSharding& sharding, DeviceMesh mesh);

  const OpSchema& op() const { return *op_; }
  // Valid while this object stays where it is.
  LocalContext context() const {
    return {*op_, *space_, mesh_, layouts_, strategy_};
  }
  // What each rank runs; scalars are worked out by evaluate(), with context().
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
