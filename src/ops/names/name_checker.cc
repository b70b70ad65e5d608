#include "ops/names/name_checker.h"

#include "base/edit_distance.h"
#include "base/quantities.h"
#include "base/try.h"
#include "ops/names/name_kind.h"
#include "ops/names/operand_counts.h"
#include "ops/names/program_names.h"
#include "ops/schema/argument_check.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

// Forms of the vocabulary whose factors have letters that modifiers may name.
constexpr std::pair<std::string_view, char> kFactorsOfForms[] = {
    {"solve", 'r'}, {"solve_ex", 'r'}};

// `NameChecker` compares the names of one rule with the overloads of its operator.
class NameChecker {
 public:
  // `row` has the names that the rule may have besides those of the overloads.
  NameChecker(const RuleNames& names, const Overloads& overloads,
              const OpLibrary& library, const RuleNames& row)
      : names_(names), overloads_(overloads), library_(library), row_(row) {}

  Result<void> check() const {
    for (const RuleNames::Name& name : names_.names) {
      if (is_of_row(name)) continue;
      SP_CHECK(name.kind == NameKind::kFactor ? check_factor(name)
                                              : check_argument(name));
    }
    for (const RuleNames::Alternative& alternative : names_.alternatives) {
      if (is_of_row(alternative)) continue;
      SP_CHECK(check_terms(alternative));
    }
    for (const RuleNames::Count& count : names_.counts) {
      if (is_of_row(count)) continue;
      SP_CHECK(check_count(count));
    }
    for (const RuleNames::Program& program : names_.programs) {
      if (is_of_row(program)) continue;
      SP_CHECK(check_program_names(program.text, program.is_per_rank,
                                   overloads_, library_));
    }
    return {};
  }

 private:
  bool is_of_row(const RuleNames::Name& name) const {
    return name.kind != NameKind::kFactor &&
           std::any_of(row_.names.begin(), row_.names.end(),
                       [&](const RuleNames::Name& own) {
                         return own.name == name.name &&
                                own.word == name.word &&
                                own.value == name.value;
                       });
  }
  bool is_of_row(const RuleNames::Count& count) const {
    return std::any_of(row_.counts.begin(), row_.counts.end(),
                       [&](const RuleNames::Count& own) {
                         return own.count == count.count &&
                                own.word == count.word;
                       });
  }
  bool is_of_row(const RuleNames::Alternative& alternative) const {
    return std::any_of(row_.alternatives.begin(), row_.alternatives.end(),
                       [&](const RuleNames::Alternative& own) {
                         return own.notation == alternative.notation;
                       });
  }
  bool is_of_row(const RuleNames::Program& program) const {
    const std::string text = to_string(program.text);
    return std::any_of(row_.programs.begin(), row_.programs.end(),
                       [&](const RuleNames::Program& own) {
                         return to_string(own.text) == text;
                       });
  }

  // Calls show no types.
  bool is_of_calls() const { return overloads_.front()->has_tag("undeclared"); }

  // Returns the operator for messages: "`mylib.f`".
  std::string op() const {
    std::string name = overloads_.front()->name();
    if (overloads_.size() > 1) name.erase(name.rfind('.'));
    constexpr std::string_view kDefault = ".default";
    if (name.ends_with(kDefault)) name.resize(name.size() - kDefault.size());
    return '`' + name + '`';
  }

  std::vector<std::string> declarations() const {
    constexpr std::size_t kMost = 3;
    std::vector<std::string> notes;
    for (const auto& overload : overloads_) {
      if (notes.size() == kMost) break;
      notes.push_back((is_of_calls() ? "called as " : "declared as ") +
                      to_string(*overload));
    }
    return notes;
  }

  tl::unexpected<Error> wrong(std::string message, std::size_t at,
                              std::string help) const {
    return fail(Error{ErrorCode::kInvalidArgument, std::move(message),
                      "column " + std::to_string(at + 1), declarations(),
                      std::move(help)});
  }

  // Returns the arguments that a name of this kind may be.
  std::vector<std::string> arguments(NameKind kind) const {
    std::vector<std::string> fitting;
    for (const auto& overload : overloads_) {
      for (const ArgumentSchema& argument : overload->arguments()) {
        const bool is_known = std::find(fitting.begin(), fitting.end(),
                                        argument.name) != fitting.end();
        if (is_known || !(is_of_calls() || fits(kind, argument))) continue;
        fitting.push_back(argument.name);
      }
    }
    return fitting;
  }

  // Returns the declared argument of that name, or null.
  const ArgumentSchema* declared(const std::string& name) const {
    for (const auto& overload : overloads_) {
      const auto i = overload->argument_index(name);
      if (i) return &overload->arguments()[*i];
    }
    return nullptr;
  }

  // Returns "an argument of `mylib.f` that is a number".
  std::string expected_of_op(NameKind kind) const {
    constexpr std::string_view kThatIs = " that is ";
    std::string text(expected_of(kind));
    const std::size_t end = std::min(text.find(kThatIs), text.size());
    return text.insert(end, " of " + op());
  }

  Result<void> check_argument(const RuleNames::Name& name) const {
    const std::vector<std::string> known = arguments(name.kind);
    if (std::find(known.begin(), known.end(), name.name) != known.end()) {
      return check_value(name);
    }
    if (name.is_implied) {
      return wrong("`" + name.word + "` reads the argument `" + name.name +
                       "`, which " + op() + " does not declare",
                   name.at,
                   "write an integer argument that is above the indices");
    }
    std::string message = "expected " + expected_of_op(name.kind);
    message += known.empty() ? ", which has none" : ": " + either_of(known);
    message += ", found `" + name.name + '`';
    if (const ArgumentSchema* other = declared(name.name)) {
      message += ", which is `" + describe_type(*other) + ' ' + name.name + '`';
    }
    return wrong(std::move(message), name.at, help_for(name, known));
  }

  // Checks the value with which a condition compares the argument, or the index of an
  // element.
  Result<void> check_value(const RuleNames::Name& name) const {
    if (name.value.empty() || is_of_calls()) return {};
    const bool is_fitting = any([&](const FunctionSchema& one) {
      const auto i = one.argument_index(name.name);
      return i && fits_value(name.kind, one.arguments()[*i], name.value);
    });
    if (is_fitting) return {};
    const ArgumentSchema& argument = *declared(name.name);
    return wrong("expected " + expected_value_of(argument) + ", because " +
                     op() + " declares `" + describe_type(argument) + ' ' +
                     name.name + "`, found `" + name.value + '`',
                 name.value_at,
                 name.kind == NameKind::kCompared
                     ? "a condition compares a str with a word, as in `if mode "
                       "is r`, and an int with an integer, as in `if mode is 2`"
                     : "elements are counted from 0");
  }

  std::string help_for(const RuleNames::Name& name,
                       const std::vector<std::string>& known) const {
    const std::vector<std::string_view> views(known.begin(), known.end());
    const std::string nearest = did_you_mean(name.name, views);
    if (name.name.size() > 1 && nearest.starts_with("did")) return nearest;
    const ArgumentSchema* other = declared(name.name);
    if (name.kind == NameKind::kInteger &&
        name.word.find(':') != std::string::npos && other != nullptr &&
        other->is_list && other->type == ArgumentType::kInt) {
      return "write one of its integers, such as `" + name.name + "[0]`";
    }
    if (name.kind == NameKind::kCondition && other != nullptr) {
      return other->type == ArgumentType::kInt && !other->is_list
                 ? "write its value: `if " + name.name + " is 1`"
                 : "every call gives `" + name.name +
                       "`; declare it with `?` if calls may leave it out";
    }
    if (is_of_calls()) {
      return "write the declaration of the operator before the rule if it has "
             "more arguments than its calls show: mylib::f(Tensor x, int n=1) "
             "-> Tensor";
    }
    return "docs/row_language.md says what `" + name.word + "` names";
  }

  // Returns the first letters of the factors that modifiers may name.
  std::vector<std::string> factors() const {
    std::vector<std::string> letters;
    const auto add = [&](char letter) {
      const std::string text(1, letter);
      if (std::find(letters.begin(), letters.end(), text) == letters.end()) {
        letters.push_back(text);
      }
    };
    for (const RuleNames::Alternative& alternative : names_.alternatives) {
      for (const Term& term : alternative.notation.inputs) {
        for (const TermDim& dim : term.dims) {
          for (const NamedFactor& factor : dim.factors) {
            if (factor.use != DimUse::kFull) add(factor.name.letter());
          }
        }
      }
    }
    for (const auto& [form, letter] : kFactorsOfForms) {
      if (form == names_.form) add(letter);
    }
    return letters;
  }

  // Returns whether the factor is one of a full dim of an operand.
  bool is_full(char letter) const {
    for (const RuleNames::Alternative& alternative : names_.alternatives) {
      for (const Term& term : alternative.notation.inputs) {
        for (const TermDim& dim : term.dims) {
          for (const NamedFactor& factor : dim.factors) {
            if (factor.name.letter() == letter) return true;
          }
        }
      }
    }
    return false;
  }

  // Returns whether a result of the notations lacks the factor.
  bool is_lacked(char letter) const {
    const auto has = [&](const Term& term) {
      return std::any_of(
          term.dims.begin(), term.dims.end(), [&](const TermDim& dim) {
            return std::any_of(dim.factors.begin(), dim.factors.end(),
                               [&](const NamedFactor& factor) {
                                 return factor.name.letter() == letter;
                               });
          });
    };
    return names_.alternatives.empty() ||
           std::any_of(names_.alternatives.begin(), names_.alternatives.end(),
                       [&](const RuleNames::Alternative& alternative) {
                         const auto& outputs = alternative.notation.outputs;
                         return !std::all_of(outputs.begin(), outputs.end(),
                                             has);
                       });
  }

  Result<void> check_factor(const RuleNames::Name& name) const {
    const std::vector<std::string> known = factors();
    if (std::find(known.begin(), known.end(), name.name) == known.end()) {
      if (is_full(name.name[0])) {
        return wrong(
            "expected a factor of an operand that may be sharded, "
            "found `" +
                name.name + "`, which is full",
            name.at, "write it as a letter or in `[ ]`");
      }
      return wrong(
          known.empty()
              ? "expected no letter, because the form `" + names_.form +
                    "` names no factor, found `" + name.name + '`'
              : "expected a factor of an operand: " + either_of(known) +
                    ", found `" + name.name + '`',
          name.at, "a factor is named by its letter in the factor notation");
    }
    if (name.word != "same_without" || is_lacked(name.name[0])) return {};
    return wrong("expected a factor that a result lacks, found `" + name.name +
                     "`, which every result has",
                 name.at, "remove `same_without`");
  }

  std::string declared_results() const {
    const FunctionSchema& first = *overloads_.front();
    std::string text =
        op() + " declares " + counted(first.returns().size(), "result");
    if (first.returns().empty()) {
      text += " and writes " + counted(written_count(first), "argument");
    }
    return text;
  }

  // Returns the number of results for messages.
  std::size_t expected_results() const {
    const FunctionSchema& first = *overloads_.front();
    return first.returns().empty() ? most_results(first).value_or(1)
                                   : first.returns().size();
  }

  template <class Fits>
  bool any(const Fits& fits) const {
    return std::any_of(overloads_.begin(), overloads_.end(),
                       [&](const auto& one) { return fits(*one); });
  }

  Result<void> check_terms(const RuleNames::Alternative& alternative) const {
    const Notation& notation = alternative.notation;
    const bool has_terms = any([&](const FunctionSchema& one) {
      return may_have_terms(one, notation);
    });
    const FunctionSchema& first = *overloads_.front();
    if (!has_terms && !is_of_calls()) {
      const std::size_t count = tensor_count(first);
      const bool is_more = notation.inputs.size() > count;
      return wrong(
          "expected " + counted(count, "term") + " of operands, because " +
              op() + " declares " + counted(count, "tensor argument") +
              ", found " + std::to_string(notation.inputs.size()),
          is_more ? alternative.inputs[count] : alternative.arrow,
          "write one term per tensor argument; `*` is that of any tensor");
    }
    const bool has_results = any([&](const FunctionSchema& one) {
      return may_have_results(one, notation.outputs.size());
    });
    if (has_results) return {};
    const std::size_t declared = expected_results();
    const bool is_more = notation.outputs.size() > declared;
    return wrong(
        "expected " + counted(declared, "term") + " of results, because " +
            declared_results() + ", found " +
            std::to_string(notation.outputs.size()),
        is_more ? alternative.outputs[declared] : alternative.outputs.back(),
        "write one term per result; `:none` is that of a result that "
        "is not produced");
  }

  Result<void> check_count(const RuleNames::Count& count) const {
    using Of = RuleNames::Count::Of;
    const bool holds = any([&](const FunctionSchema& one) {
      if (count.of == Of::kResults) return may_have_results(one, count.count);
      if (count.of == Of::kSomeResults) {
        const auto most = most_results(one);
        return !most || count.count <= *most;
      }
      const bool has_list =
          std::any_of(one.arguments().begin(), one.arguments().end(),
                      [](const ArgumentSchema& argument) {
                        return argument.is_tensor_list();
                      });
      return has_list || is_of_calls() || count.count <= tensor_count(one);
    });
    if (holds) return {};
    if (count.of == Of::kOperands) {
      const std::size_t most = tensor_count(*overloads_.front());
      return wrong("expected at most " + counted(most, "sign") + ", because " +
                       op() + " declares " + counted(most, "tensor argument") +
                       ", found " + std::to_string(count.count),
                   count.at, "write a sign for each tensor argument");
    }
    const bool is_exact = count.of == Of::kResults;
    const bool is_most = !is_exact || overloads_.front()->returns().empty();
    return wrong(
        std::string("expected ") + (is_most ? "at most " : "") +
            counted(expected_results(), "result") + ", because " +
            declared_results() + ", found " + std::to_string(count.count),
        count.at,
        is_exact ? "the last argument of `" + count.word +
                       "` is the number of results: " + count.word + "(2)"
                 : "`" + count.word + "` has one argument for each result");
  }

  const RuleNames& names_;
  const Overloads& overloads_;
  const OpLibrary& library_;
  const RuleNames& row_;
};

}  // namespace

Result<void> compare_names(const RuleNames& names, const Overloads& overloads,
                           const OpLibrary& library, const RuleNames& row) {
  return NameChecker(names, overloads, library, row).check();
}

}  // namespace shardprop
