#include "ops/rules/rule_arguments.h"

#include "base/parse_int.h"
#include "base/quantities.h"
#include "base/try.h"
#include "ops/program/program_text.h"
#include "ops/rules/rule_words.h"
#include "ops/rules/type_rule.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace shardprop {
namespace {

constexpr FactorKind kFactorKinds[] = {
    FactorKind::kParallel, FactorKind::kBlocked,   FactorKind::kWindowed,
    FactorKind::kIndexed,  FactorKind::kSegmented, FactorKind::kScanned};

constexpr std::pair<std::string_view, ProductKind> kProducts[] = {
    {"none", ProductKind::kNone},
    {"plain", ProductKind::kPlain},
    {"convolution", ProductKind::kConvolution},
    {"attention", ProductKind::kAttention}};

std::string_view expected_of(GivenKind kind) {
  switch (kind) {
    case GivenKind::kNothing:
      return "no argument";
    case GivenKind::kName:
      return "the name of one argument";
    case GivenKind::kNameAndNumber:
      return "the name of an argument, and a dim of the result";
    case GivenKind::kNameMaybeNumber:
      return "the name of an argument, and the number of a result if it is not "
             "the first";
    case GivenKind::kNames:
    case GivenKind::kSomeNames:
    case GivenKind::kNamesOfResults:
      return "names of arguments";
    case GivenKind::kSigns:
      return "signs, + or -";
    case GivenKind::kReduceOp:
      return "one of sum, avg, product, min, max, band, bor, bxor";
    case GivenKind::kTypes:
      return "dtypes, such as f32, first or given(dtype,first)";
    case GivenKind::kStrides:
      return "a word of strides, such as first or images";
    case GivenKind::kCount:
      return "a number of at most nine digits";
    case GivenKind::kBound:
      return "a name, and one of dim, listed_dim, elements, rows, classes, or "
             "an integer argument";
    case GivenKind::kDistribution:
      return "a distribution, such as uniform or normal";
    case GivenKind::kFactor:
    case GivenKind::kFactors:
      return "the letter of a factor";
    case GivenKind::kProduct:
      return "one of none, plain, convolution, attention";
    case GivenKind::kWork:
      return "one or two numbers such as 2/3, or an integer argument";
    case GivenKind::kWords:
      return "the name of an argument, and the words that it may be";
    case GivenKind::kProgram:
    case GivenKind::kRankProgram:
      return "a program in quotes, such as \"e = exp(x); return e\"";
  }
  return "";
}

// Returns true for the number of a dim or a result.
bool is_small(std::string_view text) {
  const auto number = parse_int(text);
  return number && *number >= 0 && *number < 64 && text.size() <= 2;
}

bool fits_kind(GivenKind kind, const std::string& text) {
  switch (kind) {
    case GivenKind::kNothing:
      return false;
    case GivenKind::kName:
    case GivenKind::kNames:
    case GivenKind::kSomeNames:
    case GivenKind::kNamesOfResults:
    case GivenKind::kBound:
      return RuleReader::is_name(text);
    case GivenKind::kSigns:
      return text == "+" || text == "-" || text == "1" || text == "-1";
    case GivenKind::kReduceOp:
      return reduction_named(text).has_value();
    case GivenKind::kTypes:
      return true;  // see check_types()
    case GivenKind::kStrides:
      return rule_words().find_strides(text) != nullptr;
    case GivenKind::kCount: {
      const auto number = parse_int(text);
      return number && *number >= 0 && text.size() <= 9;
    }
    case GivenKind::kDistribution:
      return distribution_named(text).has_value();
    case GivenKind::kFactor:
    case GivenKind::kFactors:
      return text.size() == 1 && RuleReader::is_letter(text[0]);
    case GivenKind::kProduct:
      return product_named(text).has_value();
    case GivenKind::kWork:
      return is_linalg_work(text) || RuleReader::is_name(text);
    case GivenKind::kWords:
      return RuleReader::is_name(text);
    case GivenKind::kNameAndNumber:
    case GivenKind::kNameMaybeNumber:
    case GivenKind::kProgram:
    case GivenKind::kRankProgram:
      return false;  // see check_name_and_number() and check_program()
  }
  return false;
}

// Returns how many arguments it takes; nullopt for any number.
std::optional<std::size_t> count_of(GivenKind kind) {
  switch (kind) {
    case GivenKind::kNothing:
      return 0;
    case GivenKind::kNames:
    case GivenKind::kSigns:
    case GivenKind::kFactors:
    case GivenKind::kTypes:
    case GivenKind::kSomeNames:
    case GivenKind::kNamesOfResults:
    case GivenKind::kWork:
    case GivenKind::kWords:
    case GivenKind::kRankProgram:
      return std::nullopt;
    case GivenKind::kBound:
    case GivenKind::kNameAndNumber:
      return 2;
    case GivenKind::kNameMaybeNumber:
      return std::nullopt;
    default:
      return 1;
  }
}

// Returns the error of a modifier whose arguments end too early.
tl::unexpected<Error> lacking(const RuleCall& call, std::string_view expected,
                              const std::string& help) {
  return RuleReader::wrong(
      "expected " + std::string(expected) + ", found " + call.found_at_end,
      call.end, help);
}

// Checks the arguments of a modifier that takes a name, and perhaps a number.
Result<void> check_name_and_number(const RuleCall& call,
                                   const std::string& help) {
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const RuleCall::Given& one = call.arguments[i];
    const bool is_right =
        !one.is_quoted && (i == 0   ? RuleReader::is_name(one.text)
                           : i == 1 ? is_small(one.text)
                                    : false);
    if (is_right) continue;
    return RuleReader::wrong(std::string("expected ") +
                                 (i == 0   ? "a name"
                                  : i == 1 ? "a number below 64"
                                           : "`)`") +
                                 ", found `" + one.text + '`',
                             one.at, help);
  }
  if (!call.arguments.empty()) return {};
  return lacking(call, "the name of an argument", help);
}

Result<void> check_distinct(const RuleCall& call, const std::string& help) {
  const auto& given = call.arguments;
  for (std::size_t i = 1; i < given.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (given[j].text != given[i].text) continue;
      return RuleReader::wrong(
          "`" + call.name + "` has `" + given[i].text + "` twice", given[i].at,
          help);
    }
  }
  return {};
}

// Checks dtype rules, such as `first` and `given(dtype,first)`.
Result<void> check_types(const RuleCall& call, const std::string& help) {
  for (const RuleCall::Given& one : call.arguments) {
    if (one.is_quoted) {
      return RuleReader::wrong("expected a dtype, found `" + one.text + '`',
                               one.at, help);
    }
    SP_CHECK(TypeRule::parse(one.text, one.at));
  }
  if (!call.arguments.empty()) return {};
  return lacking(call, "a dtype", help);
}

Result<void> check_work(const RuleCall& call, const std::string& help) {
  const auto& given = call.arguments;
  if (given.empty()) return lacking(call, "a number", help);
  const std::size_t most = is_linalg_work(given[0].text) ? 2 : 1;
  for (std::size_t i = 1; i < given.size(); ++i) {
    if (i < most && is_linalg_work(given[i].text)) continue;
    return RuleReader::wrong(std::string("expected ") +
                                 (i < most ? "a number" : "`)`") + ", found `" +
                                 given[i].text + '`',
                             given[i].at, help);
  }
  return {};
}

// Checks the arguments of a modifier that takes a program.
Result<void> check_program(const RuleCall& call, GivenKind kind,
                           const std::string& help) {
  const auto& given = call.arguments;
  if (given.empty()) return lacking(call, "a program in quotes", help);
  if (!given[0].is_quoted) {
    return RuleReader::wrong(
        "expected a program in quotes, found `" + given[0].text + '`',
        given[0].at, help);
  }
  SP_CHECK(parse_program(given[0].text, given[0].at));
  const std::size_t most = kind == GivenKind::kRankProgram ? 2 : 1;
  if (given.size() > most) {
    return RuleReader::wrong("expected `)`, found `" + given[most].text + '`',
                             given[most].at, help);
  }
  if (given.size() < 2 || factor_kind_named(given[1].text)) return {};
  return RuleReader::wrong(
      "expected one of parallel, blocked, windowed, indexed, segmented, "
      "scanned, found `" +
          given[1].text + '`',
      given[1].at, help);
}

}  // namespace

std::optional<FactorKind> factor_kind_named(std::string_view text) {
  for (const FactorKind kind : kFactorKinds) {
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

std::optional<ProductKind> product_named(std::string_view text) {
  for (const auto& [name, kind] : kProducts) {
    if (name == text) return kind;
  }
  return std::nullopt;
}

Result<void> check_arguments(const RuleCall& call, GivenKind kind) {
  const std::string expected(expected_of(kind));
  const std::string help = "`" + call.name + "` takes " + expected;
  if (kind == GivenKind::kProgram || kind == GivenKind::kRankProgram) {
    return check_program(call, kind, help);
  }
  const bool has_number =
      kind == GivenKind::kNameMaybeNumber || kind == GivenKind::kNameAndNumber;
  if (has_number) SP_CHECK(check_name_and_number(call, help));
  for (const RuleCall::Given& one : call.arguments) {
    if (has_number) break;
    if (one.is_quoted || !fits_kind(kind, one.text)) {
      return RuleReader::wrong(
          "expected " + expected + ", found `" + one.text + '`', one.at, help);
    }
  }
  if (kind == GivenKind::kTypes) SP_CHECK(check_types(call, help));
  const bool needs_name =
      kind == GivenKind::kSomeNames || kind == GivenKind::kNamesOfResults;
  if (needs_name && call.arguments.empty()) {
    return lacking(call, "the name of an argument", help);
  }
  if (kind == GivenKind::kNames || kind == GivenKind::kSomeNames ||
      kind == GivenKind::kWords) {
    SP_CHECK(check_distinct(call, help));
  }
  if (kind == GivenKind::kWork) SP_CHECK(check_work(call, help));
  if (kind == GivenKind::kWords && call.arguments.size() < 2) {
    return lacking(
        call,
        call.arguments.empty() ? "the name of an argument" : "`,` and a word",
        help);
  }
  const auto count = count_of(kind);
  if (!count) return {};
  if (call.arguments.size() < *count) {
    return lacking(call, call.arguments.empty() ? expected : "`,`", help);
  }
  if (call.arguments.size() > *count) {
    return RuleReader::wrong(
        "expected `)`, found `" + call.arguments[*count].text + '`',
        call.arguments[*count].at, help);
  }
  return {};
}

namespace {

// The arguments from which the words of `below` compute the bound.
constexpr std::pair<std::string_view, std::array<std::string_view, 2>>
    kBoundArguments[] = {{"dim", {"self", "dim"}},
                         {"listed_dim", {"self", "indices"}},
                         {"elements", {"self"}},
                         {"rows", {"weight"}},
                         {"classes", {"self"}}};

// Adds the arguments of the operator that the second argument of `below` reads. A word
// such as `rows` is computed from `weight`.
void add_bound(const RuleCall::Given& bound, RuleNames& out) {
  for (const auto& [word, needs] : kBoundArguments) {
    if (word != bound.text) continue;
    for (const std::string_view name : needs) {
      if (name.empty()) continue;
      out.names.push_back(
          {std::string(name), bound.at, NameKind::kArgument, bound.text, true});
    }
    return;
  }
  out.names.push_back({bound.text, bound.at, NameKind::kInteger, "below"});
}

}  // namespace

void add_names(const RuleCall& call, GivenKind kind, NameKind names,
               RuleNames& out) {
  using Of = RuleNames::Count::Of;
  const auto& given = call.arguments;
  if (kind == GivenKind::kProgram || kind == GivenKind::kRankProgram) {
    auto program = parse_program(given[0].text, given[0].at);
    if (!program) return;
    out.programs.push_back(
        {*std::move(program), kind == GivenKind::kRankProgram});
    return;
  }
  if (kind == GivenKind::kTypes) {
    for (const RuleCall::Given& one : given) {
      (void)TypeRule::parse(one.text, one.at, &out);
    }
  }
  const bool is_of_results =
      kind == GivenKind::kTypes || kind == GivenKind::kNamesOfResults;
  if (is_of_results && given.size() > 1) {
    out.counts.push_back(
        {given.size(), given.back().at, Of::kSomeResults, call.name});
  }
  if (kind == GivenKind::kSigns && given.size() > 1) {
    out.counts.push_back(
        {given.size(), given.back().at, Of::kOperands, call.name});
  }
  if (kind == GivenKind::kStrides) {
    out.words.push_back({given[0].text, given[0].at});
  }
  if (!takes_names(kind)) return;
  const bool has_one_name = kind == GivenKind::kNameAndNumber ||
                            kind == GivenKind::kNameMaybeNumber ||
                            kind == GivenKind::kBound ||
                            kind == GivenKind::kWords;
  for (const RuleCall::Given& one : given) {
    if (has_one_name && &one != given.data()) break;
    if (kind == GivenKind::kWork && is_linalg_work(one.text)) continue;
    out.names.push_back({one.text, one.at, names, call.name});
  }
  if (kind == GivenKind::kBound) add_bound(given[1], out);
  if (kind == GivenKind::kNameMaybeNumber && given.size() > 1) {
    const auto result = static_cast<std::size_t>(*parse_int(given[1].text));
    out.counts.push_back(
        {result + 1, given[1].at, Of::kSomeResults, call.name});
  }
}

}  // namespace shardprop
