// InPlace finds the values that an operator may overwrite because no one
// reads them afterwards.
#pragma once

#include <shardprop/graph/graph.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

class InPlace {
 public:
  explicit InPlace(const Graph& graph);

  // Returns whether the result of `node` may reuse the memory of its input.
  // This needs two conditions:
  //   1. the node is the only remaining user of the memory, with one use; and
  //   2. the program produced the memory itself, or is to update it.
  bool may(const Node& node, std::size_t input) const;

 private:
  struct Memory {
    std::int64_t last_use = -1;  // index of a node
    int uses_there = 0;
    bool changeable = true;
  };
  const Graph& graph_;
  std::vector<Memory> memory_;  // by BufferId of the graph
};

}  // namespace shardprop
