#include "ops/schema/schema_parser.h"

#include "ops/schema/argument_types.h"

#include <fmt/format.h>

#include <string>
#include <type_traits>

namespace shardprop {
namespace {

std::string print_float(double value) {
  std::string out = fmt::format("{:.17g}", value);
  if (out.find_first_of(".en") == std::string::npos) out += '.';
  return out;
}

std::string print_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string print_one(bool value) { return value ? "True" : "False"; }
std::string print_one(std::int64_t value) { return std::to_string(value); }
std::string print_one(double value) { return print_float(value); }
std::string print_one(const std::string& text) { return print_string(text); }
std::string print_one(const TensorArg&) { return "None"; }

template <class T>
std::string print_list(const std::vector<T>& list) {
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ", ";
    out += print_one(list[i]);
  }
  return out + ']';
}

std::string print_default(const ArgumentSchema& argument) {
  for (const EnumeratedDefault& known : enumerated_defaults()) {
    if (known.type_name == argument.type_name &&
        known.value == argument.default_value) {
      return std::to_string(known.number);
    }
  }
  return std::visit(
      [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool> ||
                      std::is_same_v<T, std::int64_t> ||
                      std::is_same_v<T, double> ||
                      std::is_same_v<T, std::string>) {
          return print_one(value);
        } else if constexpr (requires { value.begin(); }) {
          return print_list(value);
        } else {
          // No declaration has a complex number, a name or a tensor as default.
          return "None";
        }
      },
      argument.default_value);
}

std::string print_type(const ArgumentSchema& argument) {
  std::string out = argument.type_name;
  if (argument.alias) {
    out += '(' + argument.alias->set;
    if (argument.alias->writes) out += '!';
    if (argument.alias->joins_wildcard) out += " -> *";
    out += ')';
  }
  if (argument.elements_optional) out += '?';
  if (argument.is_list) {
    out += '[';
    if (argument.list_size) out += std::to_string(*argument.list_size);
    out += ']';
  }
  if (argument.is_optional) out += '?';
  return out;
}

}  // namespace

std::string to_string(const ArgumentSchema& argument) {
  std::string out = print_type(argument);
  if (!argument.name.empty()) out += ' ' + argument.name;
  if (argument.has_default) out += '=' + print_default(argument);
  return out;
}

std::string to_string(const FunctionSchema& schema) {
  std::string out = fmt::format("{}::{}", schema.ns(), schema.base_name());
  if (schema.overload() != "default") {
    out += fmt::format(".{}", schema.overload());
  }
  out += '(';
  bool keyword_only = false;
  std::string separator;
  for (const ArgumentSchema& argument : schema.arguments()) {
    out += separator;
    separator = ", ";
    if (argument.keyword_only && !keyword_only) {
      out += "*, ";
      keyword_only = true;
    }
    out += to_string(argument);
  }
  out += ") -> ";
  const std::vector<ArgumentSchema>& returns = schema.returns();
  if (returns.size() == 1) return out + to_string(returns.front());
  out += '(';
  separator.clear();
  for (const ArgumentSchema& result : returns) {
    out += separator + to_string(result);
    separator = ", ";
  }
  return out + ')';
}

}  // namespace shardprop
