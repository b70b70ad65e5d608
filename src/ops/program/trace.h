// Evaluates the program of an operator definition for one call: selects
// overloads, fills in arguments and infers shapes.
#pragma once

#include <shardprop/ops/decomposition.h>
#include <shardprop/ops/op_library.h>

#include "ops/program/program_text.h"

#include <memory>

namespace shardprop {

// Precondition: op.outputs is filled in. A `per_rank` program may use local
// sizes, offsets and collectives. In other programs each step has its index
// space. `space` is the index space of the operator, for per-rank programs.
// note_factors() adds the factors of the tensors that collectives move. Errors:
// kProgram, if the text does not fit the call.
Result<std::shared_ptr<Decomposition>> trace_program(
    const ProgramText& text, const OpSchema& op, const OpLibrary& library,
    bool per_rank, const IndexSpace* space = nullptr);

}  // namespace shardprop
