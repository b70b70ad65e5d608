#include "ops/added_row.h"

#include <shardprop/ops/rule_text.h>

#include "base/try.h"
#include "ops/names/name_checker.h"
#include "ops/program/program_cycle.h"
#include "ops/rules/word_needs.h"

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Checks that the operators of a row declare the arguments that the words of its rule need.
Result<void> check_words_of(const OpLibrary& library, const OpRow& row) {
  if (!uses_words(row.definition)) return {};
  std::vector<std::string> names = {row.name};
  if (library.find(row.name) == nullptr) names = library.overloads(row.name);
  // The library has rows of its own for operators that it does not declare.
  if (names.empty() && row.family != "user") return {};
  if (names.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "the rule of `" + row.name +
                    "` uses a word, which needs the declaration of the "
                    "operator",
                "write its declaration before the rule, such as "
                "`mylib::f(Tensor self, int dim) -> Tensor`");
  }
  for (const std::string& name : names) {
    // An overload may have a row of its own.
    const auto function = library.find(name);
    if (library.row(*function) != &row) continue;
    SP_CHECK(check_words(row.definition, *function));
  }
  return {};
}

// Checks the names in the printed text of the row. A definition that is made by
// functions has no text that can be read.
Result<void> check_names_of(const OpLibrary& library, const OpRow& row,
                            const RuleNames& known) {
  const Overloads overloads = overloads_of_row(library, row.name);
  if (overloads.empty()) return {};
  const std::string text = row.definition.text();
  const auto names = names_in_rule(text);
  if (!names) return {};
  auto checked = compare_names(*names, overloads, library, known);
  if (checked) return {};
  return fail(std::move(checked).error().at("the rule " + text));
}

// Returns whether only PyTorch can declare the operator. One of another library may be
// known by its calls alone.
bool is_of_torch(const std::string& name) {
  return name.starts_with("aten.") || name.starts_with("prims.") ||
         name.find('.') == std::string::npos;
}

}  // namespace

Result<void> check_added_row(const OpLibrary& library, const OpRow& row,
                             const RuleNames& known) {
  const std::string& name = row.name;
  if (is_of_torch(name) && library.find(name) == nullptr &&
      library.overloads(name).empty()) {
    return fail(ErrorCode::kUnknownOperator,
                "`" + name + "` is not a declared operator",
                library.suggest(name));
  }
  auto programs = row.definition.check_program();
  if (!programs) {
    return fail(
        std::move(programs).error().at("the program of `" + name + "`"));
  }
  SP_CHECK(check_words_of(library, row));
  if (calls_itself(library, row)) {
    return fail(ErrorCode::kProgram,
                "the program of `" + name + "` calls `" + name + "` again",
                "write the program in terms of other operators");
  }
  return check_names_of(library, row, known);
}

}  // namespace shardprop
