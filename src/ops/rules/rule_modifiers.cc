// The modifiers of the rule language: one table, by name.

#include "base/parse_int.h"
#include "base/try.h"
#include "ops/rules/rule_arguments.h"
#include "ops/rules/rule_call.h"
#include "ops/rules/rule_words.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

using Given = std::vector<RuleCall::Given>;

std::vector<std::string> names_of(const Given& given) {
  std::vector<std::string> names;
  for (const RuleCall::Given& one : given) names.push_back(one.text);
  return names;
}

struct RuleModifier {
  std::string_view name;
  GivenKind kind;
  OpDefinition (*apply)(OpDefinition rule, const Given& given);
};

template <auto Member>
OpDefinition apply_plain(OpDefinition rule, const Given&) {
  return (std::move(rule).*Member)();
}

template <auto Member>
OpDefinition apply_name(OpDefinition rule, const Given& given) {
  return (std::move(rule).*Member)(std::string_view(given[0].text));
}

template <auto Member>
OpDefinition apply_names(OpDefinition rule, const Given& given) {
  return (std::move(rule).*Member)(names_of(given));
}

OpDefinition apply_elementwise(OpDefinition rule, const Given& given) {
  if (given.empty()) return std::move(rule).elementwise();
  return std::move(rule).elementwise(names_of(given));
}

OpDefinition apply_like(OpDefinition rule, const Given& given) {
  return std::move(rule).like(names_of(given));
}

OpDefinition apply_signs(OpDefinition rule, const Given& given) {
  std::vector<int> signs;
  for (const RuleCall::Given& one : given) {
    signs.push_back(one.text[0] == '-' ? -1 : 1);
  }
  return std::move(rule).additive(std::move(signs));
}

OpDefinition apply_lattice(OpDefinition rule, const Given& given) {
  return std::move(rule).lattice(*reduction_named(given[0].text));
}

// Returns the arguments as one text again.
std::string joined_text(const Given& given) {
  std::string text;
  for (const RuleCall::Given& one : given) {
    if (!text.empty()) text += ',';
    text += one.text;
  }
  return text;
}

OpDefinition apply_types(OpDefinition rule, const Given& given) {
  return std::move(rule).typed(std::string_view(joined_text(given)));
}

OpDefinition apply_strides(OpDefinition rule, const Given& given) {
  return std::move(rule).strided(std::string_view(given[0].text));
}

OpDefinition apply_flops(OpDefinition rule, const Given& given) {
  return std::move(rule).flops(static_cast<double>(*parse_int(given[0].text)));
}

OpDefinition apply_local_shape(OpDefinition rule, const Given& given) {
  const int output =
      given.size() > 1 ? static_cast<int>(*parse_int(given[1].text)) : 0;
  return std::move(rule).local_shape(given[0].text, output);
}

OpDefinition apply_local_size(OpDefinition rule, const Given& given) {
  return std::move(rule).local_size(
      given[0].text, static_cast<int>(*parse_int(given[1].text)));
}

OpDefinition apply_below(OpDefinition rule, const Given& given) {
  return std::move(rule).below(given[0].text, given[1].text);
}

OpDefinition apply_nonempty(OpDefinition rule, const Given& given) {
  if (given.empty()) return std::move(rule).nonempty();
  for (const RuleCall::Given& factor : given) {
    rule = std::move(rule).nonempty(factor.text);
  }
  return rule;
}

OpDefinition apply_reduced(OpDefinition rule, const Given& given) {
  return std::move(rule).reduced_without(*reduction_named(given[0].text));
}

OpDefinition apply_product(OpDefinition rule, const Given& given) {
  return std::move(rule).multiplies(*product_named(given[0].text));
}

OpDefinition apply_draws(OpDefinition rule, const Given& given) {
  return std::move(rule).draws(*distribution_named(given[0].text));
}

OpDefinition apply_work(OpDefinition rule, const Given& given) {
  return std::move(rule).linalg_work(
      given[0].text,
      given.size() > 1 ? std::string_view(given[1].text) : std::string_view());
}

OpDefinition apply_words(OpDefinition rule, const Given& given) {
  std::vector<std::string> words = names_of(given);
  words.erase(words.begin());
  return std::move(rule).one_of(given[0].text, std::move(words));
}

OpDefinition apply_decomposed(OpDefinition rule, const Given& given) {
  return std::move(rule).decomposed(given[0].text);
}

OpDefinition apply_per_rank(OpDefinition rule, const Given& given) {
  return std::move(rule).per_rank(
      given[0].text,
      given.size() > 1 ? factor_kind_named(given[1].text) : std::nullopt);
}

using Definition = OpDefinition;
constexpr RuleModifier kModifiers[] = {
    // dtype of the results
    {"promoted", GivenKind::kNothing, apply_plain<&Definition::promoted>},
    {"floating", GivenKind::kNothing, apply_plain<&Definition::floating>},
    {"boolean", GivenKind::kNothing, apply_plain<&Definition::boolean>},
    {"of", GivenKind::kName, apply_name<&Definition::of>},
    {"typed", GivenKind::kTypes, apply_types},
    // strides of the results
    {"elementwise", GivenKind::kNames, apply_elementwise},
    {"like", GivenKind::kSomeNames, apply_like},
    {"contiguous", GivenKind::kNothing, apply_plain<&Definition::contiguous>},
    {"strided", GivenKind::kStrides, apply_strides},
    // partials that pass through
    {"additive", GivenKind::kSigns, apply_signs},
    {"multilinear", GivenKind::kNothing, apply_plain<&Definition::multilinear>},
    {"linear_in", GivenKind::kName, apply_name<&Definition::linear_in>},
    {"nondecreasing", GivenKind::kNothing,
     apply_plain<&Definition::nondecreasing>},
    {"nonincreasing", GivenKind::kNothing,
     apply_plain<&Definition::nonincreasing>},
    {"nondecreasing_in_each", GivenKind::kNothing,
     apply_plain<&Definition::nondecreasing_in_each>},
    {"lattice", GivenKind::kReduceOp, apply_lattice},
    {"passes", GivenKind::kNames, apply_names<&Definition::passes>},
    {"ignores_values", GivenKind::kNames,
     apply_names<&Definition::ignores_values>},
    // traits
    {"draws", GivenKind::kDistribution, apply_draws},
    {"below", GivenKind::kBound, apply_below},
    {"positive", GivenKind::kName, apply_name<&Definition::positive>},
    {"nonzero", GivenKind::kName, apply_name<&Definition::nonzero>},
    {"selects", GivenKind::kNames, apply_names<&Definition::selects>},
    {"in_order", GivenKind::kNothing, apply_plain<&Definition::in_order>},
    {"in_dense_rows", GivenKind::kNothing,
     apply_plain<&Definition::in_dense_rows>},
    // other properties
    {"blocked", GivenKind::kName, apply_name<&Definition::blocked>},
    {"nonempty", GivenKind::kFactors, apply_nonempty},
    {"reduced_without", GivenKind::kReduceOp, apply_reduced},
    {"same_without", GivenKind::kFactor, apply_name<&Definition::same_without>},
    {"nonlinear", GivenKind::kNothing, apply_plain<&Definition::nonlinear>},
    {"filling", GivenKind::kNothing, apply_plain<&Definition::filling>},
    {"conjugated", GivenKind::kNothing, apply_plain<&Definition::conjugated>},
    {"free_where_viewed", GivenKind::kNothing,
     apply_plain<&Definition::free_where_viewed>},
    {"multiplies", GivenKind::kProduct, apply_product},
    {"random", GivenKind::kNothing, apply_plain<&Definition::random>},
    {"free", GivenKind::kNothing, apply_plain<&Definition::free>},
    {"flops", GivenKind::kCount, apply_flops},
    {"given_one", GivenKind::kSomeNames, apply_names<&Definition::given_one>},
    {"scales", GivenKind::kSomeNames, apply_names<&Definition::scales>},
    {"nonempty_reduced", GivenKind::kNothing,
     apply_plain<&Definition::nonempty_reduced>},
    {"linalg_work", GivenKind::kWork, apply_work},
    {"one_of", GivenKind::kWords, apply_words},
    {"normalises", GivenKind::kNothing, apply_plain<&Definition::normalises>},
    {"carries", GivenKind::kNothing, apply_plain<&Definition::carries>},
    {"writes_into", GivenKind::kName, apply_name<&Definition::writes_into>},
    {"local_shape", GivenKind::kNameMaybeNumber, apply_local_shape},
    {"local_size", GivenKind::kNameAndNumber, apply_local_size},
    // programs
    {"decomposed", GivenKind::kProgram, apply_decomposed},
    {"per_rank", GivenKind::kRankProgram, apply_per_rank},
};

std::string list_of_modifiers() {
  std::string text = "the modifiers are ";
  for (const RuleModifier& modifier : kModifiers) {
    if (&modifier != kModifiers) text += ", ";
    text += modifier.name;
  }
  return text + "; docs/row_language.md has an example of each";
}

}  // namespace

std::optional<ReduceOp> reduction_named(std::string_view text) {
  for (const ReduceOp op : kAllReduceOps) {
    if (to_string(op) == text) return op;
  }
  return std::nullopt;
}

Result<OpDefinition> modified(OpDefinition rule, const RuleCall& call) {
  const auto* found = std::find_if(
      std::begin(kModifiers), std::end(kModifiers),
      [&](const RuleModifier& modifier) { return modifier.name == call.name; });
  if (found == std::end(kModifiers)) {
    const std::string word =
        call.name + '(' + joined_text(call.arguments) + ')';
    if (rule_words().find_modifier(word) != nullptr) {
      return std::move(rule).refine(std::string_view(word));
    }
    if (rule_words().find_check(word) != nullptr) {
      return std::move(rule).checked(std::string_view(word));
    }
    return RuleReader::wrong("`" + call.name + "` is not a modifier", call.at,
                             list_of_modifiers());
  }
  SP_CHECK(check_arguments(call, found->kind));
  return found->apply(std::move(rule), call.arguments);
}

}  // namespace shardprop
