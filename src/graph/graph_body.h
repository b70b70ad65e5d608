// Graph::Body stores the content of a Graph.
#pragma once

#include <shardprop/graph/graph.h>

#include "graph/data_flow.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace shardprop {

struct Graph::Body {
  std::string name;
  std::string device = "cpu";
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<Buffer> buffers;
  std::vector<GraphInput> inputs;
  std::vector<GraphOutput> outputs;
  std::vector<Symbol> symbols;
  std::vector<Guard> guards;
  std::vector<ReadingNote> notes;

  // The fields below are computed once, after all fields above are complete.
  DataFlow data_flow;
  std::unordered_map<std::string, NodeId> node_names;
  std::unordered_map<std::string, ValueId> value_names;
  std::unordered_map<std::string, ValueId> qualified_names;
  // These maps give the gradient and the update of an input.
  std::unordered_map<ValueId, ValueId> gradients;
  std::unordered_map<ValueId, ValueId> updates;
  std::uint64_t hash = 0;

  Node& node(NodeId id) { return nodes[id.index()]; }
  Value& value(ValueId id) { return values[id.index()]; }
};

// See Graph::hash().
std::uint64_t hash_graph(const Graph::Body& body);

}  // namespace shardprop
