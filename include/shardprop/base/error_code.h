// The stable error codes. A code is never renumbered or reused; a new one is
// one line here. The hundreds name the module that reports it:
//
//   SP00xx usage, resources SP05xx graphs and operators
//   SP01xx meshes           SP06xx redistribution
//   SP02xx strategies       SP07xx plans
//   SP03xx placements       SP08xx plan problems and solving
//   SP04xx files            SP09xx collectives and execution
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardprop {

enum class ErrorCode : std::uint16_t {
// NOLINTNEXTLINE(bugprone-macro-parentheses): an enumerator takes none.
#define SHARDPROP_ERROR_CODE(name, number, exit, meaning) name = number,
#include <shardprop/base/error_codes.inc>
#undef SHARDPROP_ERROR_CODE
};

// "SP0301".
std::string code_string(ErrorCode code);

// "kShardDimOutOfRange".
std::string_view code_name(ErrorCode code);

// What the code stands for, one phrase.
std::string_view code_meaning(ErrorCode code);

// The status that a program ends with because of the error: 1 a finding (none
// found with this memory or time, a rank that failed), 2 wrong usage, 3 input
// that cannot be read or is malformed, 4 an operator without a strategy.
int code_exit(ErrorCode code);

}  // namespace shardprop
