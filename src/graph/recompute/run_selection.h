// `RunSelection` collects the nodes of a graph that run again.
#pragma once

#include "graph/recompute/node_facts.h"
#include "graph/recompute/second_runs.h"

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <cstdint>

namespace shardprop {

class RunSelection {
 public:
  // Both must outlive the object.
  RunSelection(const Graph& graph, const OpLibrary& library);

  const NodeFacts& node_facts() const { return facts_; }
  OperatorFacts facts(const Node& node) const { return facts_.of(node); }

  // Adds a node that need not be kept. A view of a kept value, and a node that must
  // not run twice, stay where they are. Precondition: nodes are added in the order
  // of the graph.
  void add(const Node& node, const OperatorFacts& facts, std::int32_t group);
  // Returns whether the node reads a result of a node that was added.
  bool reads_second_run(const Node& node) const;

  const SecondRuns& runs() const { return runs_; }
  bool is_empty() const;

 private:
  const Graph& graph_;
  NodeFacts facts_;
  std::size_t last_;  // forward node
  SecondRuns runs_;
};

}  // namespace shardprop
