// Gzip with a bound on what comes out.
#pragma once

#include <shardprop/base/result.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace shardprop {

bool is_gzip(std::string_view bytes);

// The message for what is too large, wherever it is found.
Error too_large(std::int64_t limit);

// All members of the stream, one after the other. Errors: kArchiveDamaged,
// kInputTooLarge.
Result<std::string> inflate_gzip(std::string_view bytes, std::int64_t limit);

}  // namespace shardprop
