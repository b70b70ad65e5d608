// `form_of` reads the forms of a rule that are written as calls, such as `reduction(sum)`
// and `along(dim,2)`.
#pragma once

#include "ops/rules/rule_call.h"

#include <string_view>

namespace shardprop {

inline constexpr std::string_view kFormsHelp =
    "a rule begins with a form: factor notation such as mk,kn->mn, "
    "einsum(mk,kn->mn), mapped(m[k]->m[k]), pointwise(), reduction(sum), "
    "along(dim), scanned(dim), same_shape() or batch(0)";

// Returns the form that a call is. With `is_of_library`, pointwise(0) has no result. Adds
// the names and the number of results of the form to `names`, unless it is null. Error:
// kInvalidArgument, which names the column.
Result<OpDefinition> form_of(RuleCall call, bool is_of_library,
                             RuleNames* names);

}  // namespace shardprop
