// Finds the factors of an operator that its decomposed program can run on parts of.
//
//   along(1).decomposed("e = exp(x); return e / sum(e, [1], True)")   dim 1 is sharded
//   along(1).decomposed("return flip(x, [1])")                        dim 1 is blocked
#pragma once

#include <shardprop/ops/decomposition.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/ops/op_schema.h>

namespace shardprop {

// Blocks every factor that the program would shard (ProgramUse) but that one of its
// steps needs in full; Factor::reason names the step. A step with a program of its own
// is replaced by that program's steps if this helps. Sets Factor::outside_program,
// and the limits of shards that the steps have. Precondition: not program.per_rank.
void shard_by_steps(Decomposition& program, const OpSchema& op,
                    IndexSpace& space);

}  // namespace shardprop
