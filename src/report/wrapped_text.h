// Text broken into rows of the width of a terminal.
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

// Broken at blanks, but for those between a number and its unit ("10.0 GiB");
// words longer than a row stand alone. Ends in a newline.
std::string wrapped(std::string_view text, const WrapOptions& options = {});

}  // namespace shardprop
