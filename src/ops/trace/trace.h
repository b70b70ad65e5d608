// The program of a row worked out for one call: overloads chosen, arguments
// filled in, shapes inferred.
#pragma once

#include <shardprop/ops/decomposition.h>
#include <shardprop/ops/op_library.h>

#include "ops/program_text.h"

#include <memory>

namespace shardprop {

// Precondition: op.outputs filled in. `per_rank` programs may use local sizes,
// offsets and collectives; of others each step has its index space.
// `space`: that of the operator, for per-rank programs.
// The factors of what collectives move are left to note_factors().
// Errors: kProgram, where the text does not fit the call.
Result<std::shared_ptr<Decomposition>> trace_program(
    const ProgramText& text, const OpSchema& op, const OpLibrary& library,
    bool per_rank, const IndexSpace* space = nullptr);

}  // namespace shardprop
