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

bool has_word(const RuleNames& names, const std::string& text) {
  return std::any_of(
      names.words.begin(), names.words.end(),
      [&](const RuleNames::Word& word) { return word.text == text; });
}

}  // namespace

RuleNames names_of_row(const OpLibrary& library, const Overloads& overloads) {
  if (overloads.empty()) return {};
  const std::string_view name = overloads.front()->name();
  for (const std::string_view row_name :
       {name, name.substr(0, name.rfind('.'))}) {
    const OpRow* row = library.row_named(row_name);
    if (row == nullptr || row->family == "user") continue;
    auto names = names_in_rule(row->definition.text());
    return names ? *std::move(names) : RuleNames();
  }
  return {};
}

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
  const RuleNames row = names_of_row(library, overloads);
  SP_CHECK(compare_names(names, overloads, library, row));
  const bool is_of_calls = overloads.front()->has_tag("undeclared");
  const bool has_new_word = std::any_of(
      names.words.begin(), names.words.end(),
      [&](const RuleNames::Word& word) { return !has_word(row, word.text); });
  if (!has_new_word || is_of_calls || overloads.size() > 1) return {};
  SP_ASSIGN(const OpDefinition rule, parse_row(text));
  return check_words(rule, *overloads.front(), &names);
}

}  // namespace shardprop
