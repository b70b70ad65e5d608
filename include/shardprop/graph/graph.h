// Graph: a tensor program as data: what goes in, the operators in the order in
// which they run, what comes out, and what all of it is there for.
//
// Immutable; made by a GraphBuilder or read from a file (io/load_graph.h).
// Node ids count in schedule order: every operand is an input or made by a
// node of a lesser id.
//
//   x: f32[16,8] -> mm(x, w) -> relu
//   graph.nodes()[0].op_name()                        "aten.mm.default"
//   graph.value(graph.nodes()[0].outputs[0]).consumers[0].node   node 1
#pragma once

#include <shardprop/graph/input_kind.h>
#include <shardprop/graph/node.h>
#include <shardprop/graph/output_kind.h>
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

struct GraphInput {
  ValueId value;
  InputKind kind = InputKind::kUser;
  bool persistent = true;  // buffers: part of the saved state
};

struct GraphOutput {
  ValueId value;
  OutputKind kind = OutputKind::kUser;
  // Gradient: of which input. Update: which input it replaces.
  ValueId target;
};

// One allocation: the value that made it first, then its views and aliases.
struct Storage {
  StorageId id;
  std::vector<ValueId> values;

  ValueId base() const { return values.front(); }
};

// A free size of the program.
struct Symbol {
  std::string name;  // s77
  std::optional<std::int64_t> hint;
  std::optional<std::int64_t> min;
  std::optional<std::int64_t> max;
};

// What must hold for the graph to be the program's.
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
  // The kind of device that its tensors lie on, as PyTorch names it: cuda. Where
  // they lie on several, the first that is not the host's; cpu when nobody said.
  const std::string& device() const;
  std::span<const Node> nodes() const;  // in schedule order
  std::span<const Value> values() const;
  std::span<const Storage> storages() const;
  // Precondition for all three: the id is of this graph.
  const Node& node(NodeId id) const;
  const Value& value(ValueId id) const;
  const Storage& storage(StorageId id) const;

  std::span<const GraphInput> inputs() const;
  std::span<const GraphOutput> outputs() const;

  std::optional<NodeId> find_node(std::string_view name) const;
  // By graph name, qualified name or alias, in this order of precedence.
  std::optional<ValueId> find_value(std::string_view name) const;

  // The gradient of an input; what a mutated input becomes.
  std::optional<ValueId> gradient_of(ValueId input) const;
  std::optional<ValueId> update_of(ValueId input) const;

  // A joint graph: some output is a gradient.
  bool has_backward() const;

  std::span<const Symbol> symbols() const;
  std::span<const Guard> guards() const;
  // What was noticed while the graph was made, for people.
  std::span<const std::string> notes() const;

  // Which nodes the given ones depend on, they themselves included: one flag
  // a node.
  std::vector<bool> ancestors(std::span<const NodeId> of) const;

  // Of everything a plan refers to: names, roles, metas, operators, arguments
  // and wiring; not of modules, source lines or the file it came from. Equal on
  // every platform.
  std::uint64_t hash() const;

  struct Body;  // private to src/graph

 private:
  friend class GraphBuilder;
  explicit Graph(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace shardprop
