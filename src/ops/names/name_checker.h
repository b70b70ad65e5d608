// Compares the names of one rule with the overloads of its operator.
#pragma once

#include "ops/names/rule_names.h"

namespace shardprop {

// Errors are those of check_names(). `row` has the names that the rule may have besides
// those of the overloads, of which there is at least one.
Result<void> compare_names(const RuleNames& names, const Overloads& overloads,
                           const OpLibrary& library, const RuleNames& row);

}  // namespace shardprop
