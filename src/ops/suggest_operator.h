// The help for the name of an operator that does not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardprop {

// `names` are full, as aten.add.Tensor; those of other overloads of the same
// operator come first, then the nearest operator.
//
//   suggest_operator("mm", names)          "did you mean `aten.mm.default`?"
//   suggest_operator("aten.mm.x", names)   "its overloads are ..."
std::string suggest_operator(std::string_view wanted,
                             std::span<const std::string> names);

}  // namespace shardprop
