// Checks of a row that a user adds to a library.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>

#include "ops/names/rule_names.h"

namespace shardprop {

// Checks that the operators of the row are declared, that its programs can be read and
// do not call their own operator, and that its words and names fit the declarations.
// `library` has the row. `known` are names that the row may have besides. Errors:
// those of OpLibrary::with().
Result<void> check_added_row(const OpLibrary& library, const OpRow& row,
                             const RuleNames& known);

}  // namespace shardprop
