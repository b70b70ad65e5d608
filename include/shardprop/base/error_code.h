// `ErrorCode` lists the stable error codes. A code is never renumbered or
// reused, and a new code is one line of error_codes.inc. The hundreds of its
// number name the module that reports it:
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

// Returns the printed code, such as "SP0301".
std::string code_string(ErrorCode code);

// Returns the enumerator's name, such as "kShardDimOutOfRange".
std::string_view code_name(ErrorCode code);

// Returns the meaning of the code as one phrase.
std::string_view code_meaning(ErrorCode code);

// Returns the exit status of the command line for this error:
//   1  a finding: no solution in this memory or time, or a rank that failed
//   2  wrong usage
//   3  input that cannot be read or is malformed
//   4  an operator without a strategy
int code_exit(ErrorCode code);

}  // namespace shardprop
