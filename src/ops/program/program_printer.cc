// Prints programs so that they parse back to the same program.

#include "ops/program/program_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace shardprop {
namespace {

// Returns how tightly an operator binds: comparisons, sums, products.
int binding_of(std::string_view op) {
  if (op == "*" || op == "/") return 2;
  return op == "+" || op == "-" ? 1 : 0;
}

std::string number_text(double value) {
  if (std::isinf(value)) return "inf";
  // The longest double in fixed notation has 309 digits before the point.
  std::array<char, 400> buffer{};
  const auto [end, code] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    std::chars_format::fixed);
  std::string text(buffer.data(), end);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

struct ExpressionPrinter {
  std::string& text;

  void print(const Expression& expression, int least_binding) {
    const auto* binary = std::get_if<BinaryExpression>(&expression.node);
    if (binary == nullptr) {
      return std::visit([this](const auto& node) { print(node); },
                        expression.node);
    }
    const int binding = binding_of(binary->op);
    const bool is_open = binding < least_binding;
    if (is_open) text += '(';
    // Operators of equal binding apply from the left.
    print(*binary->left, binding);
    text += ' ' + binary->op + ' ';
    print(*binary->right, binding + 1);
    if (is_open) text += ')';
  }
  void print(const NameExpression& name) { text += name.name; }
  void print(const NumberExpression& number) {
    if (const auto* truth = std::get_if<bool>(&number.value)) {
      text += *truth ? "True" : "False";
    } else if (const auto* whole = std::get_if<std::int64_t>(&number.value)) {
      text += std::to_string(*whole);
    } else {
      text += number_text(std::get<double>(number.value));
    }
  }
  void print(const NoneExpression&) { text += "None"; }
  void print(const ListExpression& list) {
    text += '[';
    for (const ExpressionPtr& element : list.elements) {
      if (text.back() != '[') text += ", ";
      print(*element, 0);
    }
    text += ']';
  }
  void print(const CallExpression& call) {
    text += call.function + '(';
    for (const ExpressionPtr& value : call.positional) {
      if (text.back() != '(') text += ", ";
      print(*value, 0);
    }
    for (const auto& [name, value] : call.named) {
      if (text.back() != '(') text += ", ";
      text += name + '=';
      print(*value, 0);
    }
    text += ')';
  }
  void print(const BinaryExpression&) {}
};

}  // namespace

std::string to_string(const ProgramText& program) {
  std::string text;
  ExpressionPrinter printer{text};
  for (const ProgramLine& line : program.lines) {
    for (const std::string& name : line.names) {
      if (&name != line.names.data()) text += ", ";
      text += name;
    }
    text += " = ";
    printer.print(*line.value, 0);
    if (!line.condition.empty()) {
      text += (line.negated ? " if not " : " if ") + line.condition;
    }
    text += "; ";
  }
  text += "return ";
  for (const ExpressionPtr& result : program.results) {
    if (&result != program.results.data()) text += ", ";
    printer.print(*result, 0);
  }
  return text;
}

}  // namespace shardprop
