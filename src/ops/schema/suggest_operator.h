// The help text for an operator name that does not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardprop {

// Suggests the overloads of the same operator, else the nearest operator.
// `names` are full names, such as aten.add.Tensor.
//
//   suggest_operator("mm", names)          "did you mean `aten.mm.default`?"
//   suggest_operator("aten.mm.x", names)   "its overloads are ..."
std::string suggest_operator(std::string_view wanted,
                             std::span<const std::string> names);

}  // namespace shardprop
