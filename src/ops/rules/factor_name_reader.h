// read_factor_name() reads the name of a factor: a letter, a letter with a number, or
// `<word>`.
#pragma once

#include "ops/rules/rule_reader.h"

#include <shardprop/ops/notation.h>

#include <string_view>

namespace shardprop {

// Error: kInvalidArgument, which names the column.
Result<FactorName> read_factor_name(RuleReader& reader, std::string_view help);

}  // namespace shardprop
