// grow() completes the blocks of a run. Chains of equal elements may leave elements out
// that each block has, where more equal ones lie outside of the run: the gradient of a
// norm's weight, if a norm after the last block has one, too.
//
//   blocks {mm} {mm_1}; each is read by one `sum` outside  ->  {mm, sum} {mm_1, sum_1}
#pragma once

#include "graph/analysis/block_runs.h"
#include "graph/analysis/graph_structure.h"

#include <vector>

namespace shardprop {

// Adds rows of counterparts whose operands are counterparts, or one and the same
// element. Each is the only reader of its kind of an element in its block, or an operand
// of one. `taken` has the elements of all runs, and receives the added ones.
void grow(const GraphStructure& structure, std::vector<bool>& taken,
          RepeatedRun& run);

}  // namespace shardprop
