// Reads a LocalRun from its JSON (local_run_json.h).
#pragma once

#include "report/json_cursor.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/local_run.h>

namespace shardprop {

// Invalid JSON becomes the problem of the cursor.
std::vector<LocalRunArgument> read_local_args(const JsonCursor& at,
                                              const DeviceMesh& mesh);
LocalRunProgram read_local_program(const JsonCursor& at,
                                   const DeviceMesh& mesh);

// Reads names of mesh dims, as steps write them.
DimIndices read_mesh_dims(const JsonCursor& at, const DeviceMesh& mesh);
CollectiveKind read_collective_kind(const JsonCursor& at);
// Reads the member "reduce_op", if there is one.
std::optional<ReduceOp> read_reduce_op(const JsonCursor& step);

}  // namespace shardprop
