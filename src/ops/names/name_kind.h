// Says which arguments a name of each kind may be.
#pragma once

#include <shardprop/ops/function_schema.h>

#include "ops/names/rule_names.h"

#include <string>
#include <string_view>

namespace shardprop {

// Returns "a tensor argument".
std::string_view expected_of(NameKind kind);
// Returns whether a name of this kind may be that argument.
bool fits(NameKind kind, const ArgumentSchema& argument);

// Returns whether a condition may compare the argument with this word or integer, or
// whether its list may have an element of that index.
bool fits_value(NameKind kind, const ArgumentSchema& argument,
                const std::string& value);
// Returns "a word", the values for which fits_value() returns true.
std::string expected_value_of(const ArgumentSchema& argument);

}  // namespace shardprop
