// Inflates gzip with a limit on the output size.
#pragma once

#include <shardprop/base/result.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace shardprop {

bool is_gzip(std::string_view bytes);

// Returns the error for input that exceeds the limit.
Error too_large(std::int64_t limit);

// Inflates all members of the stream, concatenated. Errors: kArchiveDamaged,
// kInputTooLarge.
Result<std::string> inflate_gzip(std::string_view bytes, std::int64_t limit);

}  // namespace shardprop
