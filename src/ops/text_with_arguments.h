// Prints a word of a rule with its arguments.
//   text_with_arguments("elementwise", {"x", "y"}) == "elementwise(x,y)"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

inline std::string text_with_arguments(
    std::string_view name, const std::vector<std::string>& arguments) {
  std::string text(name);
  text += '(';
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i > 0) text += ',';
    text += arguments[i];
  }
  return text + ')';
}

}  // namespace shardprop
