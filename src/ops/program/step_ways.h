// `StepWay` is one way to run a step of a decomposed program on one mesh dim. Its
// states are those of each operand and result on that mesh dim: R, S(dim)
// or P(op).
//
//   mm f32[4,8], f32[8,6]:  S(0),R->S(0)  R,S(1)->S(1)  S(1),S(0)->P(sum)  R,R->R
#pragma once

#include "ops/program/step_state.h"

#include <shardprop/base/inline_vector.h>
#include <shardprop/ops/decomposition.h>
#include <shardprop/ops/index_space.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

struct StepWay {
  static constexpr int kNoFactor = -1;
  // The factor of the step that the mesh dim shards; kNoFactor if no operand or
  // result is sharded.
  int factor = kNoFactor;
  InlineVector<StepState, 4> inputs;
  InlineVector<StepState, 4> outputs;
};

// Returns the state of an operand on a mesh dim that shards the factor. `without`
// is its state if it lacks the factor.
StepState state_of(const Operand& operand, int factor, Without without);

// Returns whether a shard of the factor is a shard of one dim, or the operand lacks
// it. A minor factor of a dim gives a strided shard, which is not a state.
bool is_one_state(const Operand& operand, int factor);

// Returns every way to run the step. The last one has replicated operands only.
std::vector<StepWay> ways_of(const IndexSpace& space);

// `SteppedOperand` is an operand of a step before the step runs.
struct SteppedOperand {
  LocalRef ref;
  StepState state;
  std::int64_t bytes = 0;  // of the largest local part
};

// Returns the way that reduces the fewest bytes of partial operands; null if no way
// accepts the operands. A sharded operand is never gathered.
const StepWay* cheapest_way(const std::vector<StepWay>& ways,
                            std::span<const SteppedOperand> operands);

}  // namespace shardprop
