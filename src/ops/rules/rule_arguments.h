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
  kSigns,            // any number of + and -
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

// Checks the arguments of a modifier. Errors, which name the column:
// kInvalidArgument, kProgramSyntax.
Result<void> check_arguments(const RuleCall& call, GivenKind kind);

// Returns true for "2/3" or "21".
bool is_linalg_work(std::string_view text);

std::optional<FactorKind> factor_kind_named(std::string_view text);
std::optional<ProductKind> product_named(std::string_view text);

}  // namespace shardprop
