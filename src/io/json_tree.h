// A whole JSON text as a tree, for readers that jump about in it. JsonReader
// reads it: as strictly, no deeper, and with its errors.
#pragma once

#include "io/linear_json.h"

#include <shardprop/base/result.h>

#include <string_view>

namespace shardprop {

// Time is linear in the text, however many keys an object has. Errors:
// kJsonSyntax, kTooDeep, kRepeatedKey, and kFieldType for integers beyond 64
// bits, each at its path.
Result<LinearJson> parse_json_tree(std::string_view text);

}  // namespace shardprop
