// The modifiers of the rule language: one table, by name.

#include "base/edit_distance.h"
#include "base/parse_int.h"
#include "base/try.h"
#include "ops/rules/rule_arguments.h"
#include "ops/rules/rule_call.h"
#include "ops/rules/rule_words.h"

#include <algorithm>
#include <cstdint>
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

// `Repeats` says how often a rule may have a modifier.
enum class Repeats : std::uint8_t {
  kOnce,
  kForEach,  // once for each argument of the operator, or factor, that it names
  // A rule has at most one modifier of these groups, because the last one would
  // replace the others.
  kDTypes,
  kStrides,
  kPrograms,
};

// `RuleModifier` is one modifier of the language. `names` is the kind of the names among its
// arguments, which compare_names() compares with the declaration of the operator.
struct RuleModifier {
  std::string_view name;
  GivenKind kind;
  NameKind names;
  Repeats repeats;
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
    {"promoted", GivenKind::kNothing, NameKind::kNone, Repeats::kDTypes,
     apply_plain<&Definition::promoted>},
    {"floating", GivenKind::kNothing, NameKind::kNone, Repeats::kDTypes,
     apply_plain<&Definition::floating>},
    {"boolean", GivenKind::kNothing, NameKind::kNone, Repeats::kDTypes,
     apply_plain<&Definition::boolean>},
    {"of", GivenKind::kName, NameKind::kTensor, Repeats::kDTypes,
     apply_name<&Definition::of>},
    {"typed", GivenKind::kTypes, NameKind::kNone, Repeats::kDTypes,
     apply_types},
    // strides of the results
    {"elementwise", GivenKind::kNames, NameKind::kTensor, Repeats::kStrides,
     apply_elementwise},
    {"like", GivenKind::kNamesOfResults, NameKind::kTensor, Repeats::kStrides,
     apply_like},
    {"contiguous", GivenKind::kNothing, NameKind::kNone, Repeats::kStrides,
     apply_plain<&Definition::contiguous>},
    {"strided", GivenKind::kStrides, NameKind::kNone, Repeats::kStrides,
     apply_strides},
    // partials that pass through
    {"additive", GivenKind::kSigns, NameKind::kNone, Repeats::kOnce,
     apply_signs},
    {"multilinear", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::multilinear>},
    {"linear_in", GivenKind::kName, NameKind::kTensor, Repeats::kForEach,
     apply_name<&Definition::linear_in>},
    {"nondecreasing", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::nondecreasing>},
    {"nonincreasing", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::nonincreasing>},
    {"nondecreasing_in_each", GivenKind::kNothing, NameKind::kNone,
     Repeats::kOnce, apply_plain<&Definition::nondecreasing_in_each>},
    {"lattice", GivenKind::kReduceOp, NameKind::kNone, Repeats::kOnce,
     apply_lattice},
    {"passes", GivenKind::kNames, NameKind::kTensors, Repeats::kForEach,
     apply_names<&Definition::passes>},
    {"ignores_values", GivenKind::kNames, NameKind::kTensors, Repeats::kForEach,
     apply_names<&Definition::ignores_values>},
    // traits
    {"draws", GivenKind::kDistribution, NameKind::kNone, Repeats::kOnce,
     apply_draws},
    {"below", GivenKind::kBound, NameKind::kTensors, Repeats::kForEach,
     apply_below},
    {"positive", GivenKind::kName, NameKind::kTensors, Repeats::kForEach,
     apply_name<&Definition::positive>},
    {"nonzero", GivenKind::kName, NameKind::kTensorOrNumber, Repeats::kForEach,
     apply_name<&Definition::nonzero>},
    {"selects", GivenKind::kNames, NameKind::kTensors, Repeats::kForEach,
     apply_names<&Definition::selects>},
    {"in_order", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::in_order>},
    {"in_dense_rows", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::in_dense_rows>},
    // other properties
    {"blocked", GivenKind::kName, NameKind::kDims, Repeats::kForEach,
     apply_name<&Definition::blocked>},
    {"nonempty", GivenKind::kFactors, NameKind::kFactor, Repeats::kForEach,
     apply_nonempty},
    {"reduced_without", GivenKind::kReduceOp, NameKind::kNone, Repeats::kOnce,
     apply_reduced},
    {"same_without", GivenKind::kFactor, NameKind::kFactor, Repeats::kForEach,
     apply_name<&Definition::same_without>},
    {"nonlinear", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::nonlinear>},
    {"filling", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::filling>},
    {"conjugated", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::conjugated>},
    {"free_where_viewed", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::free_where_viewed>},
    {"multiplies", GivenKind::kProduct, NameKind::kNone, Repeats::kOnce,
     apply_product},
    {"random", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::random>},
    {"free", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::free>},
    {"flops", GivenKind::kCount, NameKind::kNone, Repeats::kOnce, apply_flops},
    {"given_one", GivenKind::kSomeNames, NameKind::kArgument, Repeats::kForEach,
     apply_names<&Definition::given_one>},
    {"scales", GivenKind::kSomeNames, NameKind::kNumber, Repeats::kOnce,
     apply_names<&Definition::scales>},
    {"nonempty_reduced", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::nonempty_reduced>},
    {"linalg_work", GivenKind::kWork, NameKind::kInteger, Repeats::kOnce,
     apply_work},
    {"one_of", GivenKind::kWords, NameKind::kText, Repeats::kForEach,
     apply_words},
    {"normalises", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::normalises>},
    {"carries", GivenKind::kNothing, NameKind::kNone, Repeats::kOnce,
     apply_plain<&Definition::carries>},
    {"writes_into", GivenKind::kName, NameKind::kTensor, Repeats::kOnce,
     apply_name<&Definition::writes_into>},
    {"local_shape", GivenKind::kNameMaybeNumber, NameKind::kIntegers,
     Repeats::kForEach, apply_local_shape},
    {"local_size", GivenKind::kNameAndNumber, NameKind::kInteger,
     Repeats::kForEach, apply_local_size},
    // programs
    {"decomposed", GivenKind::kProgram, NameKind::kNone, Repeats::kPrograms,
     apply_decomposed},
    {"per_rank", GivenKind::kRankProgram, NameKind::kNone, Repeats::kPrograms,
     apply_per_rank},
};

constexpr bool states_all_names() {
  for (const RuleModifier& modifier : kModifiers) {
    const bool has_names = modifier.names != NameKind::kNone;
    if (takes_names(modifier.kind) != has_names) return false;
  }
  return true;
}
static_assert(states_all_names(),
              "a modifier states what its names may be, if it takes names");

// Returns the help for a name that no modifier has.
std::string list_of_modifiers(std::string_view wrong) {
  std::vector<std::string_view> names;
  for (const RuleModifier& modifier : kModifiers) {
    names.push_back(modifier.name);
  }
  const std::string nearest = did_you_mean(wrong, names);
  std::string text;
  if (nearest.starts_with("did")) text = nearest + ' ';
  text += "the modifiers are ";
  for (const std::string_view name : names) {
    if (name != names.front()) text += ", ";
    text += name;
  }
  return text + "; docs/row_language.md has an example of each";
}

const RuleModifier* modifier_named(std::string_view name) {
  const auto* found = std::find_if(
      std::begin(kModifiers), std::end(kModifiers),
      [&](const RuleModifier& modifier) { return modifier.name == name; });
  return found == std::end(kModifiers) ? nullptr : found;
}

// Returns whether a modifier lets partials pass through, which `nonlinear()` ends.
bool is_linear(const RuleModifier& modifier) {
  constexpr std::string_view kNames[] = {
      "additive",      "multilinear",           "linear_in", "nondecreasing",
      "nonincreasing", "nondecreasing_in_each", "lattice",   "passes"};
  return std::find(std::begin(kNames), std::end(kNames), modifier.name) !=
         std::end(kNames);
}

// Returns whether a rule may have both modifiers.
bool may_follow(const RuleModifier* first, const RuleModifier* second) {
  const bool are_of_table = first != nullptr && second != nullptr;
  if (first == second && are_of_table) {
    return first->repeats == Repeats::kForEach;
  }
  if (are_of_table && second->name == "nonlinear") return !is_linear(*first);
  const bool is_in_group = are_of_table && first->repeats > Repeats::kForEach;
  return !is_in_group || first->repeats != second->repeats;
}

}  // namespace

std::optional<ReduceOp> reduction_named(std::string_view text) {
  for (const ReduceOp op : kAllReduceOps) {
    if (to_string(op) == text) return op;
  }
  return std::nullopt;
}

Result<OpDefinition> modified(OpDefinition rule, const RuleCall& call,
                              RuleNames* names) {
  const RuleModifier* found = modifier_named(call.name);
  if (found == nullptr) {
    const std::string word =
        call.name + '(' + joined_text(call.arguments) + ')';
    if (names != nullptr) names->words.push_back({word, call.at});
    if (rule_words().find_modifier(word) != nullptr) {
      return std::move(rule).refine(std::string_view(word));
    }
    if (rule_words().find_check(word) != nullptr) {
      return std::move(rule).checked(std::string_view(word));
    }
    return RuleReader::wrong("`" + call.name + "` is not a modifier", call.at,
                             list_of_modifiers(call.name));
  }
  SP_CHECK(check_arguments(call, found->kind));
  if (names != nullptr) add_names(call, found->kind, found->names, *names);
  return found->apply(std::move(rule), call.arguments);
}

Result<void> check_repeated(const RuleCall& call,
                            const std::vector<RuleCall>& earlier) {
  const RuleModifier* own = modifier_named(call.name);
  for (const RuleCall& other : earlier) {
    const bool is_same =
        other.name == call.name &&
        joined_text(other.arguments) == joined_text(call.arguments);
    if (is_same) {
      return RuleReader::wrong("the rule has `" + call.name + '(' +
                                   joined_text(call.arguments) + ")` twice",
                               call.at, "remove one of them");
    }
    if (may_follow(modifier_named(other.name), own)) continue;
    return RuleReader::wrong("`" + call.name + "` replaces `" + other.name +
                                 "`: expected one of them",
                             call.at, "remove one of them");
  }
  return {};
}

}  // namespace shardprop
