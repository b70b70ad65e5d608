#include <shardprop/graph/sym_expr.h>

#include "base/saturating.h"
#include "base/try.h"
#include "graph/sym_expr_node.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace shardprop {
namespace {

using Bindings = SymExpr::Bindings;
using MaybeInt = std::optional<std::int64_t>;

MaybeInt add(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::nullopt : MaybeInt(out);
}

MaybeInt multiply(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::nullopt : MaybeInt(out);
}

// As in Python, this rounds towards minus infinity; the remainder has b's sign.
MaybeInt floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) {
    return std::nullopt;
  }
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

MaybeInt modulo(std::int64_t a, std::int64_t b) {
  const MaybeInt quotient = floor_divide(a, b);
  if (!quotient) return std::nullopt;
  // The product may overflow 64 bits; the remainder, between 0 and b, does not.
  return saturated(a - WideInt{*quotient} * b);
}

MaybeInt power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  // For a larger exponent, any other base overflows.
  constexpr std::int64_t kMostUseful = 64;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (exponent > kMostUseful) return std::nullopt;
  MaybeInt out = 1;
  for (std::int64_t i = 0; i < exponent && out; ++i) out = multiply(*out, base);
  return out;
}

MaybeInt combine(SymOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case SymOp::kAdd:
      return add(a, b);
    case SymOp::kMultiply:
      return multiply(a, b);
    case SymOp::kPower:
      return power(a, b);
    case SymOp::kMax:
      return std::max(a, b);
    case SymOp::kMin:
      return std::min(a, b);
    case SymOp::kFloorDivide:
      return floor_divide(a, b);
    case SymOp::kModulo:
      return modulo(a, b);
    case SymOp::kConstant:
    case SymOp::kSymbol:
    case SymOp::kOpaque:
      break;
  }
  return std::nullopt;
}

MaybeInt evaluate_node(const SymExpr::Node& node, const Bindings& bindings) {
  switch (node.op) {
    case SymOp::kConstant:
      return node.value;
    case SymOp::kSymbol: {
      const auto found = bindings.find(node.text);
      return found == bindings.end() ? std::nullopt : MaybeInt(found->second);
    }
    case SymOp::kOpaque:
      return std::nullopt;
    default:
      break;
  }
  MaybeInt out = evaluate_node(*node.operands.front(), bindings);
  for (std::size_t i = 1; i < node.operands.size() && out; ++i) {
    const MaybeInt next = evaluate_node(*node.operands[i], bindings);
    out = next ? combine(node.op, *out, *next) : std::nullopt;
  }
  return out;
}

void collect_symbols(const SymExpr::Node& node, std::set<std::string>& names) {
  if (node.op == SymOp::kSymbol) names.insert(node.text);
  for (const SymNode& operand : node.operands) {
    collect_symbols(*operand, names);
  }
}

bool any_opaque(const SymExpr::Node& node) {
  return node.op == SymOp::kOpaque ||
         std::any_of(node.operands.begin(), node.operands.end(),
                     [](const SymNode& n) { return any_opaque(*n); });
}

bool equal(const SymExpr::Node& a, const SymExpr::Node& b) {
  return a.op == b.op && a.value == b.value && a.text == b.text &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(),
                    b.operands.end(), [](const SymNode& x, const SymNode& y) {
                      return equal(*x, *y);
                    });
}

int precedence(SymOp op) {
  switch (op) {
    case SymOp::kAdd:
      return 1;
    case SymOp::kMultiply:
    case SymOp::kFloorDivide:
    case SymOp::kModulo:
      return 2;
    case SymOp::kPower:
      return 3;
    default:
      return 4;
  }
}

std::string_view infix(SymOp op) {
  switch (op) {
    case SymOp::kAdd:
      return " + ";
    case SymOp::kMultiply:
      return "*";
    case SymOp::kFloorDivide:
      return "//";
    case SymOp::kModulo:
      return " % ";
    case SymOp::kPower:
      return "**";
    default:
      return ", ";
  }
}

std::string print(const SymExpr::Node& node) {
  switch (node.op) {
    case SymOp::kConstant:
      return std::to_string(node.value);
    case SymOp::kSymbol:
    case SymOp::kOpaque:
      return node.text;
    default:
      break;
  }
  const bool call = node.op == SymOp::kMax || node.op == SymOp::kMin;
  std::string out;
  if (call) out = node.op == SymOp::kMax ? "max(" : "min(";
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const SymExpr::Node& operand = *node.operands[i];
    const int inner = precedence(operand.op);
    const int outer = precedence(node.op);
    // Sums in sums and products in products need no brackets.
    const bool associates =
        operand.op == node.op &&
        (node.op == SymOp::kAdd || node.op == SymOp::kMultiply);
    const bool equals =
        inner == outer && !associates && (i > 0 || node.op == SymOp::kPower);
    const bool brackets = !call && (inner < outer || equals);
    if (i > 0) out += infix(node.op);
    out += brackets ? '(' + print(operand) + ')' : print(operand);
  }
  return call ? out + ')' : out;
}

SymNode constant_node(std::int64_t value) {
  return std::make_shared<const SymExpr::Node>(
      SymExpr::Node{SymOp::kConstant, value, {}, {}});
}

}  // namespace

SymExpr::SymExpr() : node_(constant_node(0)) {}
SymExpr::SymExpr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

SymExpr SymExpr::constant(std::int64_t value) {
  return SymExpr(constant_node(value));
}

SymExpr SymExpr::symbol(std::string name) {
  return SymExpr(std::make_shared<const Node>(
      Node{SymOp::kSymbol, 0, std::move(name), {}}));
}

Result<SymExpr> SymExpr::parse(std::string_view srepr) {
  SP_ASSIGN(SymNode node, parse_sym_node(srepr));
  return SymExpr(std::move(node));
}

std::optional<std::int64_t> SymExpr::evaluate(const Bindings& bindings) const {
  return evaluate_node(*node_, bindings);
}

std::optional<std::int64_t> SymExpr::as_constant() const {
  return evaluate({});
}

bool SymExpr::is_opaque() const { return any_opaque(*node_); }

std::vector<std::string> SymExpr::symbols() const {
  std::set<std::string> names;
  collect_symbols(*node_, names);
  return {names.begin(), names.end()};
}

std::string to_string(const SymExpr& expression) {
  return print(*expression.node_);
}

bool operator==(const SymExpr& a, const SymExpr& b) {
  return equal(*a.node_, *b.node_);
}

}  // namespace shardprop
