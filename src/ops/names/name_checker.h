// Compares the names of one rule with the overloads of its operator.
#pragma once

#include "ops/names/rule_names.h"

namespace shardprop {

// Checks the names of a rule against the overloads of its operator, of which there is at
// least one: each name belongs to at least one overload. A rule of an undeclared operator
// is checked against its calls in a graph, which show names and no types. Our rows share
// texts, so that a row of several operators may name an argument that one of them lacks.
// So a rule may use the names of `row`, which names_of_row() returns. Errors, which name
// the column: kInvalidArgument, kProgramSyntax.
Result<void> compare_names(const RuleNames& names, const Overloads& overloads,
                           const OpLibrary& library, const RuleNames& row);

}  // namespace shardprop
