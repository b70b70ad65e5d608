// Writes out a decomposition that describes what each rank runs.
#pragma once

#include "strategy/derived_program.h"

#include <shardprop/strategy/local_context.h>

namespace shardprop {

// Returns the program of each rank. Its collectives run over the mesh dims that
// shard the factor for which the program was written.
// Precondition: context.space.program->per_rank.
DerivedProgram transcript(const LocalContext& context);

}  // namespace shardprop
