// Says which arguments a name of each kind may be.
#pragma once

#include <shardprop/ops/function_schema.h>

#include "ops/names/rule_names.h"

#include <string_view>

namespace shardprop {

// Returns "a tensor argument".
std::string_view expected_of(NameKind kind);
// Returns whether a name of this kind may be that argument.
bool fits(NameKind kind, const ArgumentSchema& argument);

}  // namespace shardprop
