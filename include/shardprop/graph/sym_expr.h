// `SymExpr` is a size that depends on the sizes of inputs, in the form in which
// torch.export writes it: SymPy's srepr.
//
//   SymExpr::parse("Mul(Integer(6), Symbol('s77', positive=True))")
//   to_string(*e)             "6*s77"
//   e->evaluate({{"s77", 4}}) 24
//
// It supports Symbol, Integer, NegativeOne and similar constants, Add, Mul,
// Pow, Max, Min, FloorDiv, CleanDiv, Mod and PythonMod. Any other part is
// opaque: it prints as written and has only its hint as a value.
#pragma once

#include <shardprop/base/result.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

class SymExpr {
 public:
  SymExpr();  // 0
  static SymExpr constant(std::int64_t value);
  static SymExpr symbol(std::string name);
  // Error: kSymExprSyntax (unbalanced, empty, too deep, an overflow).
  static Result<SymExpr> parse(std::string_view srepr);

  using Bindings = std::map<std::string, std::int64_t, std::less<>>;
  // Returns nullopt if a symbol is unbound, a part is opaque, a divisor is zero
  // or a result overflows 64 bits.
  std::optional<std::int64_t> evaluate(const Bindings& bindings) const;

  std::optional<std::int64_t> as_constant() const;
  bool is_opaque() const;  // whether a part is opaque
  // Returns the names of its symbols, sorted and unique.
  std::vector<std::string> symbols() const;

  friend std::string to_string(const SymExpr& expression);
  friend bool operator==(const SymExpr& a, const SymExpr& b);

  struct Node;  // private to src/graph/sym_expr.cc

 private:
  explicit SymExpr(std::shared_ptr<const Node> node);
  std::shared_ptr<const Node> node_;
};

}  // namespace shardprop
