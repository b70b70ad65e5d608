// Tests that the examples of docs/row_language.md are rules, and that the page has
// every function of programs.
#include "ops/program/program_functions.h"

#include <shardprop/ops/rule_text.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

// Returns the texts in backticks of one line.
std::vector<std::string> code_in(std::string_view cell) {
  std::vector<std::string> found;
  while (true) {
    const std::size_t from = cell.find('`');
    if (from == std::string_view::npos) return found;
    const std::size_t end = cell.find('`', from + 1);
    if (end == std::string_view::npos) return found;
    found.emplace_back(cell.substr(from + 1, end - from - 1));
    cell.remove_prefix(end + 1);
  }
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('|'), line.size());
    if (end > 0) cells.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return cells;
}

}  // namespace

TEST_CASE("the examples of docs/row_language.md are rules") {
  std::ifstream page("docs/row_language.md");
  REQUIRE(page);
  int examples = 0;
  const auto is_rule = [&](const std::string& text) {
    CAPTURE(text);
    const auto rule = parse_definition(text);
    CHECK(rule.has_value());
    if (!rule) return;
    CHECK(parse_definition(rule->text())->text() == rule->text());
    ++examples;
  };
  bool in_code = false;
  bool has_rules = false;
  bool is_modifier = false;  // the table of the line has modifiers
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      in_code = !in_code;
      has_rules = in_code && line == "```";
    } else if (in_code) {
      const std::string text = line.substr(0, line.find("    "));
      if (line.starts_with("error")) has_rules = false;
      if (has_rules) is_rule(text);
    } else if (line.starts_with("| ") && !line.starts_with("| `if")) {
      const std::vector<std::string> cells = cells_of(line);
      if (line.find("| meaning") != std::string::npos) {
        is_modifier = line.starts_with("| modifier");
      } else if (cells.size() == 2 && is_modifier) {
        for (const std::string& text : code_in(cells[0])) {
          is_rule("same_shape()." + text);
        }
      } else if (cells.size() == 3) {
        for (const std::string& text : code_in(cells[1])) is_rule(text);
      }
    }
  }
  CHECK(examples > 60);
}

// A row of the table is | `name(x)`, `other(x, d)` * | meaning |; the star marks
// functions that depend on the rank.
TEST_CASE("docs/row_language.md has every function of programs") {
  std::ifstream page("docs/row_language.md");
  REQUIRE(page);
  std::map<std::string, bool> is_of_rank;  // by name
  bool is_function = false;  // the table of the line has functions
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| ")) continue;
    if (line.find("| meaning") != std::string::npos) {
      is_function = line.starts_with("| function");
    } else if (is_function) {
      const std::string cell = cells_of(line)[0];
      for (const std::string& call : code_in(cell)) {
        is_of_rank[call.substr(0, call.find('('))] = cell.ends_with("* ");
      }
    }
  }
  for (const ProgramFunction& function : program_functions()) {
    CAPTURE(function.name);
    const auto found = is_of_rank.find(std::string(function.name));
    REQUIRE(found != is_of_rank.end());
    CHECK(found->second == function.is_of_rank);
  }
  CHECK(is_of_rank.size() == program_functions().size());
}
