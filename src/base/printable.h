// printable() makes text of a file or of the command line safe to show on a
// terminal. It escapes control characters, which move the cursor, colour, forge
// lines or change the direction of text. It also escapes bytes that are not
// UTF-8.
//
//   printable("a\x1b[31m\nb")   "a\\x1b[31m\\nb"
#pragma once

#include <string>
#include <string_view>

namespace shardprop {

std::string printable(std::string_view text);

}  // namespace shardprop
