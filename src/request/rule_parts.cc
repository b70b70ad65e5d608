#include "request/rule_parts.h"

#include "base/parse_int.h"

#include <utility>

namespace shardprop {

std::string without_blanks(std::string_view text) {
  std::string out(text);
  std::erase_if(out, [](char c) { return c == ' ' || c == '\n'; });
  return out;
}

std::size_t equals_of(std::string_view rule) {
  int depth = 0;
  for (std::size_t at = 0; at < rule.size(); ++at) {
    if (rule[at] == '(' || rule[at] == '[') ++depth;
    if (rule[at] == ')' || rule[at] == ']') --depth;
    if (rule[at] == '=' && depth <= 0) return at;
  }
  return std::string_view::npos;
}

std::string operator_of(std::string_view rule) {
  std::string name = without_blanks(rule.substr(0, rule.find_first_of("=(")));
  constexpr std::string_view kPrefix = "torch.ops.";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  if (const auto colons = name.find("::"); colons != std::string::npos) {
    name.replace(colons, 2, ".");
  }
  return name;
}

std::string_view row_of(std::string_view rule) {
  const std::size_t equals = equals_of(rule);
  return equals == std::string_view::npos ? std::string_view()
                                          : rule.substr(equals + 1);
}

std::string_view declaration_of(std::string_view rule) {
  rule = rule.substr(0, equals_of(rule));
  return rule.find('(') == std::string_view::npos ? std::string_view() : rule;
}

std::optional<std::size_t> column_of(const Error& error) {
  constexpr std::string_view kColumn = "column ";
  if (!error.location.starts_with(kColumn)) return std::nullopt;
  const auto column =
      parse_int(std::string_view(error.location).substr(kColumn.size()));
  if (!column || *column < 1) return std::nullopt;
  return static_cast<std::size_t>(*column) - 1;
}

Error moved(Error error, std::size_t from) {
  if (const auto column = column_of(error)) {
    error.location = "column " + std::to_string(*column + from + 1);
  }
  return error;
}

}  // namespace shardprop
