// Which values may be written into: nobody looks at them afterwards.
#pragma once

#include <shardprop/graph/graph.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

class Overwriting {
 public:
  explicit Overwriting(const Graph& graph);

  // Whether what `node` takes as its input may become its result: that is the
  // last use of the memory, which the program made itself or is to update.
  bool may(const Node& node, std::size_t input) const;

 private:
  struct Memory {
    std::int64_t last_use = -1;  // index of a node
    int uses_there = 0;
    bool changeable = true;
  };
  const Graph& graph_;
  std::vector<Memory> memory_;  // by StorageId of the graph
};

}  // namespace shardprop
