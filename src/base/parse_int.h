// parse_int() reads a text that consists of one integer only.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardprop {

inline std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, code] = std::from_chars(begin, end, value);
  if (code != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace shardprop
