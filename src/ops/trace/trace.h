// The program of a row worked out for one call: overloads chosen, arguments
// filled in, shapes inferred.
#pragma once

#include <shardprop/ops/decomposition.h>
#include <shardprop/ops/op_library.h>

#include "ops/program_text.h"

#include <memory>
#include <span>

namespace shardprop {

// Precondition: op.outputs filled in. `per_rank` programs may use local sizes,
// offsets and collectives; of others each step has its index space.
// `local_arguments`: those of the operator itself that differ on the ranks.
// The factors of what collectives move are left to note_factors().
// Errors: kProgram, where the text does not fit the call.
Result<std::shared_ptr<Decomposition>> trace_program(
    const ProgramText& text, const OpSchema& op, const OpLibrary& library,
    bool per_rank, std::span<const LocalArgument> local_arguments = {});

}  // namespace shardprop
