// Reads operator definitions from text.

#include <shardprop/ops/rule_text.h>

#include "base/edit_distance.h"
#include "base/quantities.h"
#include "base/try.h"
#include "ops/forms/forms.h"
#include "ops/forms/mapped.h"
#include "ops/rules/fixed_notation.h"
#include "ops/rules/notation_parser.h"
#include "ops/rules/rule_call.h"
#include "ops/rules/rule_forms.h"
#include "ops/rules/rule_words.h"
#include "ops/text_with_arguments.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

constexpr std::string_view kNotationForms[] = {"einsum", "mapped"};
constexpr std::string_view kCallForms[] = {"pointwise", "reduction",  "along",
                                           "scanned",   "same_shape", "batch"};

// Rejects calls with fewer results than the notation has terms. Calls with more
// results are rejected under every rule.
OpDefinition::Check has_results(std::size_t terms) {
  return [terms](const OpCall& call, const IndexSpace&) {
    const auto& returns = call.op().function->returns();
    const bool has_list =
        std::any_of(returns.begin(), returns.end(),
                    [](const ArgumentSchema& one) { return one.is_list; });
    require(has_list || terms <= returns.size(), [&] {
      return "the rule has " + counted(terms, "result") + ", the call " +
             std::to_string(returns.size());
    });
  };
}

// Returns the rule with result dtypes from the graph, not inferred ones.
OpDefinition as_stated(OpDefinition rule) {
  return std::move(rule)
      .typed([](const OpCall& call, std::size_t result) {
        const auto& outputs = call.op().outputs;
        if (result < outputs.size()) return outputs[result].dtype();
        return call.op().inputs.empty() ? DType::kF32 : call.first().dtype();
      })
      .strided([](const OpCall& call, const Dims& shape, DType dtype) {
        for (const TensorMeta& output : call.op().outputs) {
          if (output.shape() == shape) return output.strides();
        }
        return make_meta(shape, dtype).strides();
      });
}

class RuleTextReader {
 public:
  // `names` may be null.
  RuleTextReader(std::string_view text, bool is_of_library,
                 RuleNames* names = nullptr)
      : text_(text), in_(text), is_of_library_(is_of_library), names_(names) {}

  // `as_graph` describes results as the graph does, before the text changes
  // them.
  Result<OpDefinition> read(bool as_graph) {
    in_.skip_blanks();
    SP_ASSIGN(OpDefinition rule, form());
    if (as_graph) rule = as_stated(std::move(rule));
    in_.skip_blanks();
    std::vector<RuleCall> modifiers;
    while (in_.skip(".")) {
      RuleCall call;
      SP_CHECK(read_name(call));
      SP_CHECK(read_arguments(call));
      SP_ASSIGN(rule, modified(std::move(rule), call, names_));
      if (!is_of_library_) SP_CHECK(check_repeated(call, modifiers));
      modifiers.push_back(std::move(call));
      in_.skip_blanks();
    }
    if (!in_.is_at_end()) {
      return in_.expected("a modifier, such as `.additive()`", kFormsHelp);
    }
    return rule;
  }

 private:
  // Returns the form whose name is next, followed by `(`, a blank, a dot or the
  // end; empty if there is none.
  template <std::size_t N>
  std::string_view next_form(const std::string_view (&names)[N]) const {
    for (const std::string_view name : names) {
      if (!in_.is_next(name)) continue;
      const char after = in_.peek(name.size());
      if (after == '(' || RuleReader::is_blank(after) || after == '\0' ||
          after == '.') {
        return name;
      }
    }
    return {};
  }

  Result<OpDefinition> form() {
    const std::string_view before_programs = text_.substr(0, text_.find('"'));
    const bool has_arrow = before_programs.find("->") != std::string_view::npos;
    if (const auto name = next_form(kNotationForms); !name.empty()) {
      return notation_form(name);
    }
    if (has_arrow) SP_CHECK(check_wrapper(before_programs.find("->")));
    if (!has_arrow && !begins_notation()) {
      RuleCall call;
      call.at = in_.at();
      call.name = next_form(kCallForms);
      if (call.name.empty()) {
        call.name = in_.word();
        if (call.name.empty()) return in_.expected("a form", kFormsHelp);
        return form_word(std::move(call));
      }
      in_.skip(call.name);
      SP_CHECK(read_arguments(call));
      for (const RuleCall::Given& one : call.arguments) {
        if (!one.is_quoted) continue;
        return RuleReader::wrong("a form has no program", one.at, kFormsHelp);
      }
      if (names_ != nullptr) names_->form = call.name;
      return form_of(std::move(call), is_of_library_, names_);
    }
    SP_ASSIGN(auto alternatives, read_notations(in_, true, names_));
    const bool is_product = reads_as_einsum(alternatives);
    return definition_of(std::move(alternatives), is_product);
  }

  // Returns whether the text begins as a notation does, although it has no arrow.
  bool begins_notation() const {
    RuleReader ahead = in_;
    if (ahead.skip("if ")) return true;
    const bool has_word = !ahead.word().empty();
    ahead.skip_blanks();
    constexpr std::string_view kAfterWord = ",-{[<*|";
    constexpr std::string_view kAtStart = ".({[<*+,";
    return !ahead.is_at_end() &&
           (has_word ? kAfterWord : kAtStart).find(ahead.peek()) !=
               std::string_view::npos;
  }

  // Refuses a notation in parentheses whose form is misspelt: `einsun(mk,kn->mn)`.
  Result<void> check_wrapper(std::size_t arrow) const {
    RuleReader ahead = in_;
    const std::string name(ahead.word());
    if (name.size() < 2 || !ahead.skip("(")) return {};
    int depth = 1;
    for (std::size_t at = ahead.at(); at < arrow; ++at) {
      depth += text_[at] == '(' ? 1 : text_[at] == ')' ? -1 : 0;
      if (depth == 0) return {};
    }
    return RuleReader::wrong(
        "expected einsum or mapped before a notation in parentheses, found `" +
            name + '`',
        in_.at(), kFormsHelp);
  }

  // Reads the arguments of a form of the vocabulary, such as `gather(dim)`.
  Result<OpDefinition> form_word(RuleCall call) {
    SP_CHECK(read_arguments(call));
    std::vector<std::string> arguments;
    for (const RuleCall::Given& one : call.arguments) {
      arguments.push_back(one.text);
    }
    const std::string word = text_with_arguments(call.name, arguments);
    if (names_ != nullptr) {
      names_->form = call.name;
      names_->words.push_back({word, call.at});
    }
    const OpDefinition* found = rule_words().find_form(word);
    if (found != nullptr) return *found;
    return RuleReader::wrong(
        "`" + call.name + "` is not a form" + known_arguments(call.name),
        call.at, help_with_form(call.name));
  }

  // Returns the help with the form of the nearest name, if there is one.
  static std::string help_with_form(std::string_view name) {
    std::vector<std::string_view> forms(std::begin(kCallForms),
                                        std::end(kCallForms));
    forms.insert(forms.end(), std::begin(kNotationForms),
                 std::end(kNotationForms));
    const std::string nearest = did_you_mean(name, forms);
    if (!nearest.starts_with("did")) return std::string(kFormsHelp);
    return nearest + " " + std::string(kFormsHelp);
  }

  // Returns " with these arguments: gather(dim)" if forms have that name.
  static std::string known_arguments(const std::string& name) {
    std::string text;
    for (const std::string& known : rule_words().forms()) {
      if (!known.starts_with(name + '(')) continue;
      text += (text.empty() ? " with these arguments, but " : ", ") + known;
    }
    return text;
  }

  // Reads `einsum(mk,kn->mn)`, or `einsum mk,kn->mn`.
  Result<OpDefinition> notation_form(std::string_view name) {
    in_.skip(name);
    const bool is_open = in_.skip("(");
    SP_ASSIGN(auto alternatives, read_notations(in_, true, names_));
    if (is_open && !in_.skip(")")) {
      return in_.expected("a dim, `,`, `|` or `)`", kFormsHelp);
    }
    return definition_of(std::move(alternatives), name == "einsum");
  }

  Result<OpDefinition> definition_of(std::vector<Notation> alternatives,
                                     bool is_product) const {
    std::size_t most = 0;
    for (const Notation& notation : alternatives) {
      most = std::max(most, notation.outputs.size());
      const bool is_added =
          std::any_of(notation.inputs.begin(), notation.inputs.end(),
                      [](const Term& term) { return term.is_added; });
      if (is_added && !is_product) {
        return RuleReader::wrong(
            "a term is added to a product, but a dim is full or blocked",
            text_.find('+'), "write the form: einsum(+n,m[k],[k]n->mn)");
      }
    }
    return (is_product ? einsum(std::move(alternatives))
                       : mapped(std::move(alternatives)))
        .checked(has_results(most));
  }

  Result<void> read_name(RuleCall& call) {
    in_.skip_blanks();
    call.at = in_.at();
    call.name = in_.word();
    if (!call.name.empty()) return {};
    return in_.expected("the name of a modifier", kFormsHelp);
  }

  // Reads `(a,b)`, ` a` or nothing.
  Result<void> read_arguments(RuleCall& call) {
    const bool is_open = in_.skip("(");
    SP_CHECK(read_list(call, is_open));
    call.end = in_.at();
    call.found_at_end = in_.found();
    if (is_open && !in_.skip(")"))
      return in_.expected("`,` or `)`", kFormsHelp);
    return {};
  }

  Result<void> read_list(RuleCall& call, bool is_open) {
    if (!is_open && !RuleReader::is_blank(in_.peek())) return {};
    while (true) {
      in_.skip_blanks();
      if (in_.is_next("\"")) {
        SP_CHECK(read_quoted(call));
        if (!in_.skip(",")) break;
        continue;
      }
      const std::size_t at = in_.at();
      SP_ASSIGN(std::string_view text, argument(is_open));
      while (!text.empty() && RuleReader::is_blank(text.back())) {
        text.remove_suffix(1);
      }
      const bool is_last = !in_.is_next(",");
      if (!text.empty()) {
        call.arguments.push_back({std::string(text), at});
      } else if (!is_last || !call.arguments.empty()) {
        return in_.expected("an argument of `" + call.name + '`', kFormsHelp);
      }
      if (is_last) break;
      in_.skip(",");
    }
    return {};
  }

  // Reads `"e = exp(x); return e"`, which has no escapes.
  Result<void> read_quoted(RuleCall& call) {
    in_.skip("\"");
    const std::size_t from = in_.at();
    const std::string_view text = in_.up_to("\"");
    if (!in_.skip("\""))
      return in_.expected("`\"` after a program", kFormsHelp);
    in_.skip_blanks();
    call.arguments.push_back({std::string(text), from, true});
    return {};
  }

  // Reads up to the next comma or parenthesis that is not in parentheses. Error:
  // kInvalidArgument if a parenthesis is not closed.
  Result<std::string_view> argument(bool is_open) {
    const std::size_t from = in_.at();
    std::vector<std::size_t> opened;
    for (; !in_.is_at_end(); in_.go_to(in_.at() + 1)) {
      const char c = in_.peek();
      if (c == '(') opened.push_back(in_.at());
      if (c == ')') {
        if (opened.empty()) break;
        opened.pop_back();
        continue;
      }
      if (!opened.empty()) continue;
      if (c == ',' || c == '.' || c == '(' || c == '"') break;
      if (!is_open && RuleReader::is_blank(c)) break;
    }
    if (!opened.empty()) {
      return RuleReader::wrong("expected a `)` for this `(`, found the end",
                               opened.back(), kFormsHelp);
    }
    return text_.substr(from, in_.at() - from);
  }

  std::string_view text_;
  RuleReader in_;
  const bool is_of_library_;
  RuleNames* names_;
};

}  // namespace

Result<OpDefinition> parse_rule(std::string_view text) {
  return RuleTextReader(text, false).read(true);
}

Result<OpDefinition> parse_definition(std::string_view text) {
  return RuleTextReader(text, false).read(false);
}

Result<RuleNames> names_in_rule(std::string_view text) {
  RuleNames names;
  SP_CHECK(RuleTextReader(text, true, &names).read(false));
  return names;
}

Result<OpDefinition> parse_row(std::string_view text) {
  return RuleTextReader(text, true).read(false);
}

}  // namespace shardprop
