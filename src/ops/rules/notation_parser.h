// Parses factor notations inside of a rule text.
#pragma once

#include "ops/names/rule_names.h"
#include "ops/rules/rule_reader.h"

#include <shardprop/ops/notation.h>

#include <string_view>
#include <vector>

namespace shardprop {

inline constexpr std::string_view kNotationHelp =
    "write one term per tensor, such as mk,kn->mn or b[s]d,b[t]d->b[s]d; "
    "docs/row_language.md has every construct";

// Parses alternatives from the reader's position. It stops at the first
// character that cannot continue them: a `)`, a `.name`, or the end. With
// `is_complete`, a size that only results have must be stated. Adds the names in the
// notations to `names`, unless it is null.
Result<std::vector<Notation>> read_notations(RuleReader& reader,
                                             bool is_complete,
                                             RuleNames* names = nullptr);

// Parses `if a and not b and mode is r: `, which may be absent.
Result<std::vector<Condition>> read_conditions(RuleReader& reader,
                                               RuleNames* names);

}  // namespace shardprop
