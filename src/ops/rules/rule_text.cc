// Reads operator definitions from text.

#include <shardprop/ops/rule_text.h>

#include "base/parse_int.h"
#include "base/quantities.h"
#include "base/try.h"
#include "ops/forms/forms.h"
#include "ops/forms/mapped.h"
#include "ops/rules/fixed_notation.h"
#include "ops/rules/notation_parser.h"
#include "ops/rules/rule_call.h"
#include "ops/rules/rule_words.h"
#include "ops/text_with_arguments.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

constexpr std::string_view kForms =
    "a rule begins with a form: factor notation such as mk,kn->mn, "
    "einsum(mk,kn->mn), mapped(m[k]->m[k]), pointwise(), reduction(sum), "
    "along(dim), scanned(dim), same_shape() or batch(0)";
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

std::optional<int> small_number(std::string_view text) {
  const auto number = parse_int(text);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (!number || *number > kMost || *number < -kMost) return std::nullopt;
  return static_cast<int>(*number);
}

// Removes and returns the number of results of a form: its last argument, if it
// is a number; else 1. Only rows of the library may have none.
Result<int> take_results(RuleCall& call, bool is_of_library) {
  if (call.arguments.empty()) return 1;
  const auto count = small_number(call.arguments.back().text);
  if (!count) return 1;
  // A check has no result: pointwise(0).
  const int least = is_of_library && call.name == "pointwise" ? 0 : 1;
  if (*count < least || *count > 64) {
    return RuleReader::wrong("expected " + std::to_string(least) +
                                 " to 64 results, found " +
                                 call.arguments.back().text,
                             call.arguments.back().at, kForms);
  }
  call.arguments.pop_back();
  return *count;
}

Result<OpDefinition> batch_of(const RuleCall& call) {
  std::vector<int> dims;
  for (const RuleCall::Given& one : call.arguments) {
    const auto dim = small_number(one.text);
    if (!dim) {
      return RuleReader::wrong("expected a dim, found `" + one.text + '`',
                               one.at, kForms);
    }
    dims.push_back(*dim);
  }
  if (dims.empty()) {
    return RuleReader::wrong("`batch` has no dim", call.at, kForms);
  }
  return batch(std::move(dims));
}

Result<OpDefinition> form_of(RuleCall call, bool is_of_library) {
  if (call.name == "batch") return batch_of(call);
  SP_ASSIGN(const int results, take_results(call, is_of_library));
  const auto& given = call.arguments;
  const bool is_along = call.name == "along" || call.name == "scanned";
  const std::size_t most = is_along || call.name == "reduction" ? 1 : 0;
  if (given.size() > most) {
    return RuleReader::wrong(
        "expected `)` of `" + call.name + "`, found `" + given[most].text + '`',
        given[most].at, kForms);
  }
  if (call.name == "pointwise") return pointwise(results);
  if (call.name == "same_shape") return same_shape(results);
  if (is_along) {
    if (given.empty()) {
      return RuleReader::wrong("`" + call.name + "` has no name of an argument",
                               call.at, kForms);
    }
    if (!RuleReader::is_name(given[0].text)) {
      return RuleReader::wrong(
          "expected the name of an argument, found `" + given[0].text + '`',
          given[0].at, kForms);
    }
    return along(
        given[0].text, results,
        call.name == "scanned" ? FactorKind::kScanned : FactorKind::kBlocked);
  }
  if (given.empty()) return reduction(std::nullopt, results);
  if (const auto op = reduction_named(given[0].text)) {
    return reduction(*op, results);
  }
  return RuleReader::wrong(
      "expected one of sum, avg, product, min, max, band, bor, bxor, found `" +
          given[0].text + '`',
      given[0].at, kForms);
}

class RuleTextReader {
 public:
  RuleTextReader(std::string_view text, bool is_of_library)
      : text_(text), in_(text), is_of_library_(is_of_library) {}

  // `as_graph` describes results as the graph does, before the text changes
  // them.
  Result<OpDefinition> read(bool as_graph) {
    in_.skip_blanks();
    SP_ASSIGN(OpDefinition rule, form());
    if (as_graph) rule = as_stated(std::move(rule));
    in_.skip_blanks();
    while (in_.skip(".")) {
      RuleCall call;
      SP_CHECK(read_name(call));
      SP_CHECK(read_arguments(call));
      SP_ASSIGN(rule, modified(std::move(rule), call));
      in_.skip_blanks();
    }
    if (!in_.is_at_end()) {
      return in_.expected("a modifier, such as `.additive()`", kForms);
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
    if (!has_arrow) {
      RuleCall call;
      call.at = in_.at();
      call.name = next_form(kCallForms);
      if (call.name.empty()) {
        call.name = in_.word();
        if (call.name.empty()) return in_.expected("a form", kForms);
        return form_word(std::move(call));
      }
      in_.skip(call.name);
      SP_CHECK(read_arguments(call));
      for (const RuleCall::Given& one : call.arguments) {
        if (!one.is_quoted) continue;
        return RuleReader::wrong("a form has no program", one.at, kForms);
      }
      return form_of(std::move(call), is_of_library_);
    }
    SP_ASSIGN(auto alternatives, read_notations(in_, true));
    const bool is_product = reads_as_einsum(alternatives);
    return definition_of(std::move(alternatives), is_product);
  }

  // Reads the arguments of a form of the vocabulary, such as `gather(dim)`.
  Result<OpDefinition> form_word(RuleCall call) {
    SP_CHECK(read_arguments(call));
    std::vector<std::string> arguments;
    for (const RuleCall::Given& one : call.arguments) {
      arguments.push_back(one.text);
    }
    const OpDefinition* found =
        rule_words().find_form(text_with_arguments(call.name, arguments));
    if (found != nullptr) return *found;
    return RuleReader::wrong(
        "`" + call.name + "` is not a form" + known_arguments(call.name),
        call.at, kForms);
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
    SP_ASSIGN(auto alternatives, read_notations(in_, true));
    if (is_open && !in_.skip(")")) {
      return in_.expected("a dim, `,`, `|` or `)`", kForms);
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
    return in_.expected("the name of a modifier", kForms);
  }

  // Reads `(a,b)`, ` a` or nothing.
  Result<void> read_arguments(RuleCall& call) {
    const bool is_open = in_.skip("(");
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
        return in_.expected("an argument of `" + call.name + '`', kForms);
      }
      if (is_last) break;
      in_.skip(",");
    }
    if (is_open && !in_.skip(")")) return in_.expected("`,` or `)`", kForms);
    return {};
  }

  // Reads `"e = exp(x); return e"`, which has no escapes.
  Result<void> read_quoted(RuleCall& call) {
    in_.skip("\"");
    const std::size_t from = in_.at();
    const std::string_view text = in_.up_to("\"");
    if (!in_.skip("\"")) return in_.expected("`\"` after a program", kForms);
    in_.skip_blanks();
    call.arguments.push_back({std::string(text), from, true});
    return {};
  }

  // Reads up to the next comma or parenthesis that is not in parentheses. Error:
  // kInvalidArgument if a parenthesis is not closed.
  Result<std::string_view> argument(bool is_open) {
    const std::size_t from = in_.at();
    int depth = 0;
    for (; !in_.is_at_end(); in_.go_to(in_.at() + 1)) {
      const char c = in_.peek();
      if (c == '(') ++depth;
      if (c == ')' && depth-- == 0) break;
      if (depth > 0) continue;
      if (c == ',' || c == '.' || c == '(' || c == '"') break;
      if (!is_open && RuleReader::is_blank(c)) break;
    }
    if (depth > 0) return in_.expected("`)`", kForms);
    return text_.substr(from, in_.at() - from);
  }

  std::string_view text_;
  RuleReader in_;
  const bool is_of_library_;
};

}  // namespace

Result<OpDefinition> parse_rule(std::string_view text) {
  return RuleTextReader(text, false).read(true);
}

Result<OpDefinition> parse_definition(std::string_view text) {
  return RuleTextReader(text, false).read(false);
}

Result<OpDefinition> parse_row(std::string_view text) {
  return RuleTextReader(text, true).read(false);
}

}  // namespace shardprop
