// UTF-8, as RFC 3629 has it: no overlong forms, no surrogates, nothing above
// U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace shardprop {

// Bytes of the first character of `text` where it is not ASCII: 2 to 4, or 0
// where the bytes are not UTF-8.
//
//   utf8_length("\xc3\xa9t\xc3\xa9")   2
//   utf8_length("\xff")               0
std::size_t utf8_length(std::string_view text);

}  // namespace shardprop
