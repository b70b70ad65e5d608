// Value: a tensor of a graph, by what it is and what it is there for.
//
// Values are immutable: an in-place operator of the source program has become
// a functional one whose result takes the place of what it wrote
// (graph_builder.h).
#pragma once

#include <shardprop/base/strong_id.h>
#include <shardprop/graph/sym_expr.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

using ValueId = StrongId<struct ValueTag>;
using NodeId = StrongId<struct NodeTag>;
using StorageId = StrongId<struct StorageTag>;

enum class ValueRole : std::uint8_t {
  kParameter,
  kBuffer,
  kConstant,
  kUserInput,
  kUserOutput,
  kLoss,
  kGradient,  // of a parameter or user input
  kUpdate,    // what a buffer, parameter or user input becomes
};

// "parameter", "user_input", ...
std::string_view to_string(ValueRole role);

// The roles of one value; it may have several (a loss is an output too).
class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<ValueRole> roles) {
    for (const ValueRole role : roles) add(role);
  }
  constexpr void add(ValueRole role) { bits_ |= bit(role); }
  constexpr bool has(ValueRole role) const { return (bits_ & bit(role)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr std::uint16_t bits() const { return bits_; }
  // Given to the graph, not made by it.
  constexpr bool is_input() const {
    return has(ValueRole::kParameter) || has(ValueRole::kBuffer) ||
           has(ValueRole::kConstant) || has(ValueRole::kUserInput);
  }
  friend constexpr bool operator==(RoleSet, RoleSet) = default;

 private:
  static constexpr std::uint16_t bit(ValueRole role) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(role));
  }
  std::uint16_t bits_ = 0;
};

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
  RoleSet roles;

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
