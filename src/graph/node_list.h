// NodeList is the graph under construction. It appends nodes and values one by
// one; all of them are functional.
#pragma once

#include <shardprop/graph/graph_builder.h>

#include "graph/graph_body.h"
#include "ops/space/view_algebra.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace shardprop {

class NodeList {
 public:
  explicit NodeList(std::string name);

  // See GraphBuilder::expect().
  void expect(std::size_t nodes, std::size_t values) {
    expected_nodes_ = nodes;
    expected_values_ = values;
  }

  Result<ValueId> add_input(NewInput input);
  // Appends a node that writes nothing in place. `viewed` has one entry per
  // output, or is empty if no output is a view. Error: kDuplicateName.
  Result<std::vector<ValueId>> append(NewNode node,
                                      const ViewedOperands& viewed);
  // Does the same for a node that the source program does not contain. Its
  // names are made unique, and finish() removes it if no node uses it.
  std::vector<ValueId> append_generated(NewNode node,
                                        const ViewedOperands& viewed);

  std::string unique_node_name(std::string_view wanted);
  Graph::Body& body() { return *body_; }
  const Graph::Body& body() const { return *body_; }

  // Drops unused generated nodes and sets consumers, gradients, updates and
  // phases.
  std::unique_ptr<Graph::Body> finish();

 private:
  bool is_taken(const std::string& name) const;
  void make_way(const std::string& name);
  // Ensures that the printed name of an input is the name of that input only.
  void rename_as_no_input(NewNode& node);
  Result<void> check_names(const NewNode& node) const;
  ValueId add_value(Value value, ValueId view_of);
  void drop_unused_generated();
  void link_consumers();
  void note_targets();
  void mark_phases();
  void index_names();

  std::unique_ptr<Graph::Body> body_;
  std::size_t expected_nodes_ = 0;
  std::size_t expected_values_ = 0;
  std::vector<bool> generated_;  // by node
  std::unordered_map<std::string, ValueId> value_names_;
  std::unordered_map<std::string, NodeId> node_names_;
  std::unordered_set<std::string> shown_names_;      // of inputs
  std::unordered_map<std::string, NodeId> renamed_;  // by their old names
  std::unordered_map<std::string, int> last_suffix_;
};

}  // namespace shardprop
