// with_second_runs() adds second runs of forward nodes to a graph.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

struct SecondRuns {
  static constexpr std::int32_t kOnce = -1;
  // By node: the group with which it runs again, or kOnce. A group runs before
  // the first backward node that reads one of its results.
  std::vector<std::int32_t> group;
  // By node: whether a backward node among the forward ones moves to its first
  // reader.
  std::vector<bool> moves;
};

// Returns the last forward node. Backward nodes before it are those that autograd
// runs in the forward phase.
std::size_t last_forward(const Graph& graph);

// Backward nodes after the last forward node, nodes that move and second runs read
// second runs. A node without such a reader runs once. Precondition: only forward
// nodes have a group, and only backward nodes before the last forward node move.
Result<Graph> with_second_runs(const Graph& graph, const OpLibrary& library,
                               const SecondRuns& runs);

}  // namespace shardprop
