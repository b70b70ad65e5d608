// These parsers read a text that consists of one number, or one amount of
// bytes, only.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {

// Only finite numbers are accepted; "inf" and "nan" are not.
inline std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// Returns the shortest text that parses to the same number: "0.5", "1e+12",
// "nan".
inline std::string number_text(double value) {
  char text[32];
  const auto [end, code] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

// Parses "80GiB", "512MiB", "1.5GB" or "1000" (bytes). Accepts amounts from 0
// to below 2^63.
inline std::optional<std::int64_t> parse_bytes(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
      {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
      {"B", 1},        {"", 1}};
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || !std::isfinite(value) || value < 0) {
    return std::nullopt;
  }
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  for (const auto& [name, scale] : kUnits) {
    if (unit == name && value * scale < 0x1p63) {
      return static_cast<std::int64_t>(value * scale);
    }
  }
  return std::nullopt;
}

}  // namespace shardprop
