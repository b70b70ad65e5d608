// The arguments of the modifiers of the rule language, and their errors.
#pragma once

#include "ops/rules/rule_call.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop {

// `GivenKind` says which arguments a modifier takes.
enum class GivenKind : std::uint8_t {
  kNothing,
  kName,             // the name of an argument of the operator
  kNameAndNumber,    // such a name, and the number of a dim
  kNameMaybeNumber,  // such a name, and the number of a result if it is not 0
  kNames,            // any number of names
  kSomeNames,        // one name or more
  kNamesOfResults,  // a name for each result; the last one is that of all others
  kSigns,           // any number of + and -
  kReduceOp,
  kTypes,    // a dtype rule
  kStrides,  // a word of strides
  kCount,    // a number
  kBound,    // a name, and what its integers are indices of
  kDistribution,
  kFactor,   // a letter
  kFactors,  // no letter, or one
  kProduct,
  kWork,         // one or two fractions; or the name of an argument
  kWords,        // a name, and words
  kProgram,      // a text in quotes
  kRankProgram,  // a text in quotes, and the kind of factors that it shards
};

// Returns whether a modifier with such arguments takes names of arguments of the operator
// or of factors. The names of kTypes are those of its dtype rules (type_rule.cc).
constexpr bool takes_names(GivenKind kind) {
  switch (kind) {
    case GivenKind::kName:
    case GivenKind::kNameAndNumber:
    case GivenKind::kNameMaybeNumber:
    case GivenKind::kNames:
    case GivenKind::kSomeNames:
    case GivenKind::kNamesOfResults:
    case GivenKind::kBound:
    case GivenKind::kFactor:
    case GivenKind::kFactors:
    case GivenKind::kWork:
    case GivenKind::kWords:
      return true;
    case GivenKind::kNothing:
    case GivenKind::kSigns:
    case GivenKind::kReduceOp:
    case GivenKind::kTypes:
    case GivenKind::kStrides:
    case GivenKind::kCount:
    case GivenKind::kDistribution:
    case GivenKind::kProduct:
    case GivenKind::kProgram:
    case GivenKind::kRankProgram:
      return false;
  }
  return false;
}

// Adds the names, counts and programs among the arguments of a modifier, whose names
// are of this kind. Precondition: check_arguments() has no error.
void add_names(const RuleCall& call, GivenKind given, NameKind names,
               RuleNames& out);

// Checks the arguments of a modifier. Errors, which name the column:
// kInvalidArgument, kProgramSyntax.
Result<void> check_arguments(const RuleCall& call, GivenKind kind);

// Returns true for "2/3" or "21".
bool is_linalg_work(std::string_view text);

std::optional<FactorKind> factor_kind_named(std::string_view text);
std::optional<ProductKind> product_named(std::string_view text);

}  // namespace shardprop
