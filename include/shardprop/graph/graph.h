// `Graph` is a tensor program as data: its inputs, its operators in schedule
// order, its outputs, and the role of each value.
//
// It is immutable. A GraphBuilder makes it, or a file is read
// (io/load_graph.h). Node ids count in schedule order: every operand is an
// input or the result of a node with a smaller id.
//   x: f32[16,8] -> mm(x, w) -> relu
//   graph.nodes()[0].op_name()                        "aten.mm.default"
//   graph.value(graph.nodes()[0].outputs[0]).consumers[0].node   node 1
#pragma once

#include <shardprop/graph/input_kind.h>
#include <shardprop/graph/node.h>
#include <shardprop/graph/output_kind.h>
#include <shardprop/graph/reading_note.h>
#include <shardprop/graph/value.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `GraphInput` is an input of the program: its value and its role.
struct GraphInput {
  ValueId value;
  InputKind kind = InputKind::kUser;
  bool persistent = true;  // buffers: part of the saved state
};

// `GraphOutput` is an output of the program: its value and its role.
struct GraphOutput {
  ValueId value;
  OutputKind kind = OutputKind::kUser;
  // Gradient: the input to which it belongs. Update: the input that it
  // replaces.
  ValueId target;
};

// `Buffer` is one buffer: the value that first allocated it, then its views
// and aliases.
struct Buffer {
  BufferId id;
  std::vector<ValueId> values;

  ValueId base() const { return values.front(); }
};

// `Symbol` is a free size of the program.
struct Symbol {
  std::string name;  // s77
  std::optional<std::int64_t> hint;
  std::optional<std::int64_t> min;
  std::optional<std::int64_t> max;
};

// `Guard` is a condition under which the graph represents the program.
struct Guard {
  std::string condition;  // "s77 == 4"
  std::string origin;     // "dim 0 of x", "range_constraints"
  friend bool operator==(const Guard&, const Guard&) = default;
};

class Graph {
 public:
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  const std::string& name() const;
  // Returns the kind of device of its tensors, as PyTorch names it, such as
  // cuda. If there are several kinds, it is the first that is not the host's;
  // without a device it is cpu.
  const std::string& device() const;
  std::span<const Node> nodes() const;  // in schedule order
  std::span<const Value> values() const;
  std::span<const Buffer> buffers() const;
  // Precondition of the next three functions: the id is from this graph.
  const Node& node(NodeId id) const;
  const Value& value(ValueId id) const;
  const Buffer& buffer(BufferId id) const;

  std::span<const GraphInput> inputs() const;
  std::span<const GraphOutput> outputs() const;

  std::optional<NodeId> find_node(std::string_view name) const;
  // Finds a value by graph name, qualified name or alias, in this order.
  std::optional<ValueId> find_value(std::string_view name) const;

  // These return the gradient of an input and the new value of a mutated input.
  std::optional<ValueId> gradient_of(ValueId input) const;
  std::optional<ValueId> update_of(ValueId input) const;

  // Returns whether this is a joint graph: whether some output is a gradient.
  bool has_backward() const;

  std::span<const Symbol> symbols() const;
  std::span<const Guard> guards() const;
  // Returns the assumptions that were made while the graph was built.
  std::span<const ReadingNote> notes() const;

  // Returns one flag per node: true for the nodes `of` and for all nodes on
  // which they depend.
  std::vector<bool> ancestors(std::span<const NodeId> of) const;

  // Returns a hash of everything to which a plan refers: names, roles, metas,
  // operators, arguments and edges. It does not include modules, source lines
  // or the file. It is equal on every platform.
  std::uint64_t hash() const;

  struct Body;  // private to src/graph

 private:
  friend class GraphBuilder;
  explicit Graph(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace shardprop
