// `NodeFacts` has the facts of a node that rules of recomputation need.
#pragma once

#include "graph/analysis/index_spaces.h"

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <vector>

namespace shardprop {

struct OperatorFacts {
  bool is_view = false;
  bool is_matmul = false;
  bool is_attention = false;
  bool runs_once = false;  // must not run twice
};

class NodeFacts {
 public:
  // Both must outlive the object.
  NodeFacts(const Graph& graph, const OpLibrary& library);

  OperatorFacts of(const Node& node) const;

 private:
  bool gives_update(const Node& node) const;
  bool has_size_of_data(const Node& node) const;

  const Graph& graph_;
  mutable IndexSpaces spaces_;
  std::vector<bool> updates_;  // by buffer
};

}  // namespace shardprop
