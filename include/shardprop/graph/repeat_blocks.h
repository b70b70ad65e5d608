// repeat_blocks() makes a deeper model of a shallow one: the repeated block of a
// graph stands for as many equal blocks as are asked for. So an export of a few
// layers suffices to plan a model of 80.
//
//   embed -> layer 0 -> layer 1 -> head        repeat_blocks(graph, library, {4})
//   embed -> layer 0 -> layer 1 -> layer 2 -> layer 3 -> head
//
// Blocks are found by structure (graph/analysis/blocks.h). The new blocks come after
// one in the middle of the row, forward and backward. The number in a name goes on:
// layers.1.wq, layers.2.wq. Later layers are numbered anew.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <cstdint>
#include <span>

namespace shardprop {

// `counts` has the number of blocks of each row of equal blocks, in the order of the
// forward phase: one for a decoder, two for an encoder with a decoder. If layers of two
// kinds alternate, both together are one block. Errors: kInvalidArgument (the graph has
// no row of equal blocks, another number of rows, a row with more blocks already, or
// operators outside of a row that read each of its blocks).
Result<Graph> repeat_blocks(const Graph& graph, const OpLibrary& library,
                            std::span<const std::int64_t> counts);

}  // namespace shardprop
