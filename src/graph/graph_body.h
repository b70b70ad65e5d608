// What a Graph holds.
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
  std::vector<std::string> notes;

  // Made once, when all of the above stands.
  DataFlow data_flow;
  std::unordered_map<std::string, NodeId> node_names;
  std::unordered_map<std::string, ValueId> value_names;
  std::unordered_map<std::string, ValueId> qualified_names;
  // The gradient and the update of an input, by the input.
  std::unordered_map<ValueId, ValueId> gradients;
  std::unordered_map<ValueId, ValueId> updates;
  std::uint64_t hash = 0;

  Node& node(NodeId id) { return nodes[id.index()]; }
  Value& value(ValueId id) { return values[id.index()]; }
};

// See Graph::hash().
std::uint64_t hash_graph(const Graph::Body& body);

}  // namespace shardprop
