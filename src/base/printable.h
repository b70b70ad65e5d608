// Text of a file or of the command line as it may be shown on a terminal:
// control characters, which move the cursor, colour, forge lines or turn the
// direction of text, and bytes that are not UTF-8 are written as escapes.
//
//   printable("a\x1b[31m\nb")   "a\\x1b[31m\\nb"
#pragma once

#include <string>
#include <string_view>

namespace shardprop {

std::string printable(std::string_view text);

}  // namespace shardprop
