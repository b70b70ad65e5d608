// ProgramText: a program in the language of rows, parsed.
//
//   x = cast(self, dtype(out))
//   e = exp(x - amax(x, [dim], True))
//   y = e * weight if weight
//   return e / sum(e, [dim], True)
//
// A program is a list of lines and a return; `v, i = topk(self, k)` names the
// results of an operator. Names are the arguments of
// the operator or earlier results; `out` stands for the results. Calls are aten
// operators by base name, whose overload follows from the arguments, or one of
// the functions of trace/trace_functions.cc (size, offset, dtype, cast,
// all_reduce_sum, ...; what each rank runs may choose by the layout:
// `if_cut(weight, 0, a, b)` is `a` where ranks hold parts of that dim). A list
// holds integers or tensors.
// Operators are + - * / < >= == |, of tensors and of numbers; inf is a number.
// An assignment with `if NAME` is made only where that argument or earlier
// result is given and not False; with `if not NAME`, elsewhere.
#pragma once

#include <shardprop/base/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {

struct Expression;
using ExpressionPtr = std::shared_ptr<const Expression>;

struct NameExpression {
  std::string name;
};
struct NumberExpression {
  std::variant<std::int64_t, double, bool> value;
};
struct NoneExpression {};
struct ListExpression {
  std::vector<ExpressionPtr> elements;
};
struct CallExpression {
  std::string function;
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};
struct BinaryExpression {
  std::string op;  // + - * / < >= == |
  ExpressionPtr left;
  ExpressionPtr right;
};

struct Expression {
  std::variant<NameExpression, NumberExpression, NoneExpression, ListExpression,
               CallExpression, BinaryExpression>
      node;
};

struct ProgramLine {
  std::vector<std::string> names;  // one, or those of the results of a step
  ExpressionPtr value;
  std::string condition;  // empty: always
  bool negated = false;   // made where the condition does not hold
};

struct ProgramText {
  std::vector<ProgramLine> lines;
  std::vector<ExpressionPtr> results;
};

// Error: kProgramSyntax, with the line.
Result<ProgramText> parse_program(std::string_view text);

}  // namespace shardprop
