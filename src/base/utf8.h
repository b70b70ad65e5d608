// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, no character
// above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace shardprop {

// Returns the bytes (2 to 4) of the first character of `text` if it is not
// ASCII. Returns 0 if the bytes are not UTF-8.
//
//   utf8_length("\xc3\xa9t\xc3\xa9")   2
//   utf8_length("\xff")               0
std::size_t utf8_length(std::string_view text);

}  // namespace shardprop
