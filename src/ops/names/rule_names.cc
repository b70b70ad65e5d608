#include "ops/names/rule_names.h"

#include <shardprop/ops/rule_text.h>

#include "base/try.h"
#include "ops/names/name_checker.h"
#include "ops/rules/rule_words.h"
#include "ops/rules/word_needs.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// Returns the names of the row that the library has for the operator.
RuleNames names_of_row(const Overloads& overloads, const OpLibrary& library) {
  const std::string& name = overloads.front()->name();
  const std::string_view packet =
      std::string_view(name).substr(0, name.rfind('.'));
  const OpRow* found = nullptr;
  for (const OpRow* row : library.rows()) {
    if (row->family == "user") continue;
    if (row->name == name || (found == nullptr && row->name == packet)) {
      found = row;
    }
  }
  if (found == nullptr) return {};
  auto names = names_in_rule(found->definition.text());
  return names ? *std::move(names) : RuleNames();
}

bool has_word(const RuleNames& names, const std::string& text) {
  return std::any_of(
      names.words.begin(), names.words.end(),
      [&](const RuleNames::Word& word) { return word.text == text; });
}

}  // namespace

std::string either_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMostListed = 12;
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == kMostListed) return text + ", …";
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += '`' + names[i] + '`';
  }
  return text;
}

Result<void> check_names(const RuleNames& names, const Overloads& overloads,
                         const OpLibrary& library) {
  if (overloads.empty()) return {};
  const RuleNames row = names_of_row(overloads, library);
  return compare_names(names, overloads, library, row);
}

std::vector<std::shared_ptr<const FunctionSchema>> overloads_of_row(
    const OpLibrary& library, std::string_view row) {
  Overloads overloads;
  for (const std::string& name : library.overloads(row)) {
    overloads.push_back(library.find(name));
  }
  if (!overloads.empty()) return overloads;
  if (auto own = library.find(row)) overloads.push_back(std::move(own));
  return overloads;
}

Result<void> check_rule(
    std::string_view text,
    const std::vector<std::shared_ptr<const FunctionSchema>>& overloads,
    const OpLibrary& library) {
  if (overloads.empty()) return {};
  SP_ASSIGN(const RuleNames names, names_in_rule(text));
  SP_CHECK(check_names(names, overloads, library));
  const bool is_of_calls = overloads.front()->has_tag("undeclared");
  const RuleNames row = names_of_row(overloads, library);
  const bool has_new_word = std::any_of(
      names.words.begin(), names.words.end(),
      [&](const RuleNames::Word& word) { return !has_word(row, word.text); });
  if (!has_new_word || is_of_calls || overloads.size() > 1) return {};
  SP_ASSIGN(const OpDefinition rule, parse_row(text));
  return check_words(rule, *overloads.front(), &names);
}

}  // namespace shardprop
