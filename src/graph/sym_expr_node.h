// SymExpr::Node is a node of the expression tree of a SymExpr.
#pragma once

#include <shardprop/graph/sym_expr.h>

namespace shardprop {

enum class SymOp : std::uint8_t {
  kConstant,
  kSymbol,
  kAdd,
  kMultiply,
  kPower,
  kMax,
  kMin,
  kFloorDivide,
  kModulo,
  kOpaque,
};

struct SymExpr::Node {
  SymOp op = SymOp::kConstant;
  std::int64_t value = 0;  // constants
  std::string text;        // symbols: the name; opaque parts: as written
  std::vector<std::shared_ptr<const Node>> operands;
};

using SymNode = std::shared_ptr<const SymExpr::Node>;

// Error: kSymExprSyntax.
Result<SymNode> parse_sym_node(std::string_view srepr);

}  // namespace shardprop
