// matches_glob() compares names with a pattern: * is any text, ? any character.
//
//   matches_glob("layers.*.mlp", "layers.3.mlp")    true
//   matches_glob("layers.?", "layers.10")           false
#pragma once

#include <string_view>

namespace shardprop {

// Returns whether the pattern matches all of `name`.
bool matches_glob(std::string_view pattern, std::string_view name);

}  // namespace shardprop
