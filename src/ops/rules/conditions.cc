// Parses the conditions of an alternative, and tests them on a call.

#include "ops/rules/conditions.h"
#include "base/parse_int.h"
#include "base/try.h"
#include "ops/rules/notation_parser.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

Result<Condition> read_condition(RuleReader& reader, RuleNames* names) {
  Condition made;
  reader.skip_blanks();
  if (reader.skip("not ")) made.holds = false;
  reader.skip_blanks();
  const std::size_t at = reader.at();
  made.argument = reader.word();
  if (made.argument.empty()) {
    return reader.expected("the name of an argument", kNotationHelp);
  }
  reader.skip_blanks();
  const bool has_value = reader.skip("is ");
  if (names != nullptr) {
    names->names.push_back(
        {made.argument, at,
         has_value ? NameKind::kCompared : NameKind::kCondition, "if"});
  }
  if (!has_value) return made;
  reader.skip_blanks();
  const std::size_t value_at = reader.at();
  made.word = reader.word();
  if (made.word.empty()) {
    return reader.expected("a value of the argument", kNotationHelp);
  }
  if (names != nullptr) {
    names->names.back().value = made.word;
    names->names.back().value_at = value_at;
  }
  reader.skip_blanks();
  return made;
}

// Returns whether the condition holds, apart from its `not`.
bool is_value(const Argument& argument, const Condition& condition) {
  if (!condition.word.empty()) {
    if (const auto* number = std::get_if<std::int64_t>(&argument)) {
      return parse_int(condition.word) == *number;
    }
    const auto* text = std::get_if<std::string>(&argument);
    return text != nullptr && *text == condition.word;
  }
  if (const auto* flag = std::get_if<bool>(&argument)) return *flag;
  if (const auto* tensor = std::get_if<TensorArg>(&argument)) {
    return tensor->operand != TensorArg::kNone;
  }
  return !std::holds_alternative<NoneArg>(argument);
}

}  // namespace

Result<std::vector<Condition>> read_conditions(RuleReader& reader,
                                               RuleNames* names) {
  std::vector<Condition> conditions;
  reader.skip_blanks();
  const std::size_t from = reader.at();
  if (!reader.skip("if ")) return conditions;
  // The letters `if` may begin a term, but no colon follows a term of operands.
  const std::size_t first = reader.at();
  reader.up_to(":-,()[]{}<>+*.|");
  const bool is_condition = reader.is_next(":");
  reader.go_to(is_condition ? first : from);
  if (!is_condition) return conditions;
  do {
    SP_ASSIGN(Condition read, read_condition(reader, names));
    conditions.push_back(std::move(read));
  } while (reader.skip("and "));
  if (!reader.skip(":")) return reader.expected("`and` or `:`", kNotationHelp);
  return conditions;
}

bool hold(const std::vector<Condition>& conditions, const OpSchema& op) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const Condition& condition) {
                       return op.has_arg(condition.argument) &&
                              is_value(op.arg(condition.argument), condition) ==
                                  condition.holds;
                     });
}

}  // namespace shardprop
