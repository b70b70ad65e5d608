// Refuses programs that the reference does not evaluate, before they run.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/program/spmd_program.h>

#include <cstdint>

namespace shardprop::verification {

// CollectiveCalls says whether operators of PyTorch's collectives may occur.
enum class CollectiveCalls : std::uint8_t { kRefused, kAllowed };

// Refuses calls that PyTorch accepted when it wrote the file but a rule
// refuses. Error: kNoReference.
Result<void> check_taken(const Graph& graph, const OpLibrary& library);

// Refuses operators that the reference lacks, views of the bits of values that run in
// wider dtypes, and with `own_dtypes` values in dtypes that the reference lacks. Error: kNoReference.
Result<void> check_declared(const SpmdProgram& program,
                            const OpLibrary& library, bool own_dtypes,
                            CollectiveCalls collectives);

// Returns the bytes of all values, because a comparison keeps all of them.
std::int64_t bytes_of(const SpmdProgram& program, bool own_dtypes);

}  // namespace shardprop::verification
