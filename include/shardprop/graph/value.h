// Value: a tensor of a graph: what it is, who makes it and who takes it.
//
// Values are immutable: an in-place operator of the source program has become
// a functional one whose result takes the place of what it wrote
// (graph_builder.h).
#pragma once

#include <shardprop/base/strong_id.h>
#include <shardprop/graph/input_kind.h>
#include <shardprop/graph/sym_expr.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

using ValueId = StrongId<struct ValueTag>;
using NodeId = StrongId<struct NodeTag>;
using StorageId = StrongId<struct StorageTag>;

// Where a value is used: operand `operand` of `node`.
struct Use {
  NodeId node;
  std::uint32_t operand = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

// A size that is no constant: `expression` has TensorMeta's size as its hint.
struct SymbolicDim {
  int dim = 0;
  SymExpr size;
};

struct Value {
  ValueId id;
  std::string name;  // in the graph: p_model_embed_weight, mm_1
  // Parameters, buffers and constants: model.embed.weight. User inputs: name.
  std::string qualified_name;
  std::vector<std::string> aliases;  // more qualified names of the same tensor
  TensorMeta meta;
  std::vector<SymbolicDim> symbolic;
  std::optional<InputKind> input_kind;  // of inputs of the graph

  NodeId producer;                 // invalid for inputs
  std::uint32_t output_index = 0;  // among the outputs of its producer
  std::vector<Use> consumers;      // in schedule order

  StorageId storage;  // views, and inputs that alias, share one
  ValueId view_of;    // the value it directly is a view of; invalid if of none

  bool is_view() const { return view_of.valid(); }
  bool is_input() const { return !producer.valid(); }
  // What people call it, it alone: the qualified name where there is one.
  const std::string& display_name() const {
    return qualified_name.empty() ? name : qualified_name;
  }
};

}  // namespace shardprop
