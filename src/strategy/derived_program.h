// The local program of a strategy whose factors the operator alone cannot
// shard, derived from the decomposition of its index space.
#pragma once

#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/local_program.h>

namespace shardprop {

// Precondition: context.space.program is not null.
LocalProgram derived_program(const LocalContext& context);

}  // namespace shardprop
