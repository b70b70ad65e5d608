// `Value` is a tensor of a graph, with its producer and its consumers.
//
// Values are immutable. An in-place operator of the source program becomes a
// functional one, and later nodes read its result instead of the written value
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
using BufferId = StrongId<struct StorageTag>;

// `Use` is one use of a value: operand `operand` of `node`.
struct Use {
  NodeId node;
  std::uint32_t operand = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

// `SymbolicDim` is a size that is not constant; the TensorMeta has the hint of
// `expression`.
struct SymbolicDim {
  int dim = 0;
  SymExpr size;
};

struct Value {
  ValueId id;
  std::string name;  // in the graph: p_model_embed_weight, mm_1
  // Parameters, buffers and constants: model.embed.weight. User inputs: the
  // name.
  std::string qualified_name;
  std::vector<std::string> aliases;  // more qualified names of the same tensor
  TensorMeta meta;
  std::vector<SymbolicDim> symbolic;
  std::optional<InputKind> input_kind;  // of inputs of the graph

  NodeId producer;                 // invalid for inputs
  std::uint32_t output_index = 0;  // among the outputs of its producer
  std::vector<Use> consumers;      // in schedule order

  BufferId buffer;  // shared by views and aliasing inputs
  ValueId view_of;  // its direct base; invalid if it is not a view

  bool is_view() const { return view_of.valid(); }
  bool is_input() const { return !producer.valid(); }
  // Returns the name for users, which is unique: the qualified name if there is
  // one.
  const std::string& display_name() const {
    return qualified_name.empty() ? name : qualified_name;
  }
};

}  // namespace shardprop
