#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shardprop::kernels {

// Returns an error message, concatenated from its pieces.
inline void append(std::string& text, std::string_view piece) { text += piece; }

template <std::integral T>
void append(std::string& text, T number) {
  text += std::to_string(number);
}

inline void append(std::string& text, std::span<const std::int64_t> sizes) {
  text += '[';
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) text += ',';
    append(text, sizes[i]);
  }
  text += ']';
}

template <class... Pieces>
std::string message(const Pieces&... pieces) {
  std::string text;
  (append(text, pieces), ...);
  return text;
}

}  // namespace shardprop::kernels
