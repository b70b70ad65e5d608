// Codes of error_codes.inc on their way there.
#pragma once

#include <shardprop/base/error_code.h>

namespace shardprop::NewCode {

inline constexpr ErrorCode kNoReference{1001};
inline constexpr ErrorCode kReferenceCall{1002};
inline constexpr ErrorCode kProgramValue{1003};

}  // namespace shardprop::NewCode
