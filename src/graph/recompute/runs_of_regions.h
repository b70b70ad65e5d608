// Rules of recomputation whose regions run again as torch.utils.checkpoint runs
// them: a region keeps its inputs, and the rest of it runs again before the first
// backward node that needs it.
//
//   region  h = x @ u, a = relu(h)     outside  y = a @ v
//     kept: x, and `a`, which the backward node of y reads
//     runs again: h, if a backward node of the region reads it
#pragma once

#include "graph/recompute/run_selection.h"

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <string>

namespace shardprop {

// The regions are the outermost modules whose path the glob matches. Error:
// kInvalidArgument (it matches none).
Result<RunSelection> runs_of_modules(const Graph& graph,
                                     const OpLibrary& library,
                                     const std::string& glob);

// The regions are those of Node::checkpoint. Error: kInvalidArgument (no forward
// node has a mark).
Result<RunSelection> runs_of_marks(const Graph& graph,
                                   const OpLibrary& library);

}  // namespace shardprop
