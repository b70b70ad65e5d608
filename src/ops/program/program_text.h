// `ProgramText` is a parsed program in the language of operator definitions.
//
//   x = cast(self, dtype(out))
//   e = exp(x - amax(x, [dim], True))
//   y = e * weight if weight
//   return e / sum(e, [dim], True)
//
// A program is a list of assignments and a return. `v, i = topk(self, k)` names
// the results of an operator. A name is an argument of the operator or an
// earlier result; `out` means the results of the operator.
//
// A call names an aten operator by its base name; the arguments select the
// overload. It may also name a function of trace/trace_functions.cc: size,
// offset, dtype, cast, all_reduce_sum, ... The program of a rank may depend on
// the layout: `if_cut(weight, 0, a, b)` is `a` if that dim of `weight` is
// sharded.
//
// A list holds integers or tensors. The operators + - * / < >= == | accept
// tensors and numbers; inf is a number. An assignment with `if NAME` runs only
// if that argument or earlier result is given and not False. An assignment with
// `if not NAME` runs otherwise.
#pragma once

#include <shardprop/base/result.h>

#include <cstddef>
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
  std::size_t at = 0;  // column, from 0
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
  std::size_t at = 0;                      // column of the function
  std::vector<std::size_t> named_at = {};  // and of each name
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
  std::vector<std::string> names;  // one, or a name per result of a step
  ExpressionPtr value;
  std::string condition;  // empty: always
  bool negated = false;   // runs if the condition is false
  std::size_t at = 0;     // column of the first name
  std::size_t condition_at = 0;
};

struct ProgramText {
  std::vector<ProgramLine> lines;
  std::vector<ExpressionPtr> results;
  std::size_t return_at = 0;  // column of `return`
};

// Error: kProgramSyntax, which names the column. `from` is the column, from 0, at
// which the program begins in a longer text.
Result<ProgramText> parse_program(std::string_view text, std::size_t from = 0);

// Returns the base name of the aten operator of a BinaryExpression: "add" for
// "+".
std::string_view operator_named(std::string_view op);

// Returns the program in one line, which parses back: "e = exp(x); return e".
std::string to_string(const ProgramText& program);

}  // namespace shardprop
