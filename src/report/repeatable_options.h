// Options of a plan that may be given several times and are lists in its file:
// "pin": ["x=S(0)", "w=R"].
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace shardprop {

inline constexpr std::string_view kRepeatableOptions[] = {
    "pin", "without", "bound", "size", "other_size", "rule"};

inline bool is_repeatable(std::string_view option) {
  return std::find(std::begin(kRepeatableOptions), std::end(kRepeatableOptions),
                   option) != std::end(kRepeatableOptions);
}

// Pins are listed even if there are none.
inline bool is_always_listed(std::string_view option) {
  return option == "pin";
}

}  // namespace shardprop
