// kept_by_compiler() finds the values that torch.compile keeps for the backward
// phase (torch/_functorch/partitioners.py, solve_min_cut).
//
// The kept values are a cut of the graph. Everything behind the cut runs again, in
// the backward kernels that need it. The cut has the fewest bytes, with weights that prefer values near the backward phase. A node
// never runs again if it
//
//   * is no operator on elements, cast, reduction or view (matmuls, attention);
//   * draws random numbers, or looks up rows;
//   * is read by a backward operator that cannot share its kernel;
//   * reduces its operands to less than a quarter of their bytes; or
//   * reads a value that an earlier kernel reads as well, so that it would be far
//     from the first reader.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <vector>

namespace shardprop {

// Returns one flag per value: whether the backward phase reads it as the forward
// phase made it. All flags are true if nothing can run again.
std::vector<bool> kept_by_compiler(const Graph& graph,
                                   const OpLibrary& library);

}  // namespace shardprop
