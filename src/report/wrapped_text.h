// Wraps text to the width of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardprop {

struct WrapOptions {
  std::size_t indent = 2;  // of the first row
  std::size_t behind = 4;  // of the others
  std::size_t width = 79;
};

// Breaks lines at blanks, but not between a number and its unit ("10.0 GiB"). A
// word longer than a line has a line of its own. The text ends in a newline.
std::string wrapped(std::string_view text, const WrapOptions& options = {});

}  // namespace shardprop
