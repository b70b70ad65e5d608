#include "cli/graph_reading.h"

#include "base/try.h"

#include <algorithm>
#include <utility>

namespace shardprop::cli {
namespace {

constexpr std::string_view kRule = "rule";
constexpr std::string_view kBound = "bound";
constexpr std::string_view kSize = "size";
constexpr std::string_view kProgram = "program";

std::string without_blanks(std::string_view text) {
  std::string out(text);
  std::erase(out, ' ');
  return out;
}

Error made_with_another(std::string_view option, const std::string& text,
                        const Said& said) {
  return {ErrorCode::kInvalidArgument,
          "the plan was made with --" + std::string(option) + " " + text,
          said.place,
          {},
          "leave it out, or plan anew without --plan"};
}

Result<void> add(std::vector<Said>& said, std::string_view option,
                 const std::string& text, const std::string& place) {
  const std::string name = operator_of(text);
  const auto same = std::find_if(
      said.begin(), said.end(),
      [&](const Said& other) { return operator_of(other.text) == name; });
  if (same == said.end()) {
    said.push_back({text, place});
    return {};
  }
  const auto same_part = [&](std::string_view (*part)(std::string_view)) {
    return without_blanks(part(same->text)) == without_blanks(part(text));
  };
  if (same_part(row_of) && same_part(declaration_of)) return {};
  return fail(made_with_another(option, text, *same));
}

}  // namespace

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
  const std::size_t equals = rule.rfind('=');
  return equals == std::string_view::npos ? std::string_view()
                                          : rule.substr(equals + 1);
}

std::string_view declaration_of(std::string_view rule) {
  rule = rule.substr(0, rule.rfind('='));
  return rule.find('(') == std::string_view::npos ? std::string_view() : rule;
}

void add_sizes(GraphReading& reading, std::string_view text,
               const std::string& place) {
  while (true) {
    const std::size_t comma = text.find(',');
    reading.sizes.push_back({std::string(text.substr(0, comma)), place});
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

GraphReading reading_of(const Arguments& arguments) {
  GraphReading reading;
  for (const std::string& text : arguments.all("--rule")) {
    reading.rules.push_back({text, "--rule " + text});
  }
  for (const std::string& text : arguments.all("--bound")) {
    reading.bounds.push_back({text, "--bound " + text});
  }
  for (const std::string& text : arguments.all("--size")) {
    add_sizes(reading, text, "--size " + text);
  }
  const std::string program = arguments.get("--program");
  if (!program.empty()) reading.program = {program, "--program " + program};
  return reading;
}

Result<void> add_saved(GraphReading& reading, const Plan& plan,
                       const std::string& path) {
  for (const auto& [name, text] : plan.options) {
    const std::string place = "--plan " + path + " $.options." + name;
    if (name == kRule) SP_CHECK(add(reading.rules, name, text, place));
    if (name == kBound) SP_CHECK(add(reading.bounds, name, text, place));
    if (name == kSize) SP_CHECK(add(reading.sizes, name, text, place));
    if (name != kProgram) continue;
    if (reading.program.text.empty()) reading.program = {text, place};
    if (reading.program.text != text) {
      return fail(made_with_another(name, text, reading.program));
    }
  }
  return {};
}

void save(const GraphReading& reading, Plan& plan) {
  for (const Said& said : reading.bounds) {
    plan.options.emplace_back(kBound, said.text);
  }
  for (const Said& said : reading.sizes) {
    plan.options.emplace_back(kSize, said.text);
  }
  for (const Said& said : reading.rules) {
    plan.options.emplace_back(kRule, said.text);
  }
  if (!reading.program.text.empty()) {
    plan.options.emplace_back(kProgram, reading.program.text);
  }
}

}  // namespace shardprop::cli
