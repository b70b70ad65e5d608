#include "base/quantities.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace shardprop {

std::string time_text(std::int64_t nanoseconds) {
  const auto ns = static_cast<double>(nanoseconds);
  if (ns == 0) return "0 us";
  if (ns < 999'950) return fmt::format("{:.1f} us", ns / 1e3);
  if (ns < 999'995'000) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {
      "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string count_text(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) {
    digits.insert(at - 3, 1, ',');
  }
  return digits;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count_text(count), noun, count == 1 ? "" : "s");
}

std::string counted(std::size_t count, std::string_view noun) {
  return counted(static_cast<std::int64_t>(count), noun);
}

double microseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e3;
}

std::optional<double> microseconds(std::optional<std::int64_t> nanoseconds) {
  if (!nanoseconds) return std::nullopt;
  return microseconds(*nanoseconds);
}

}  // namespace shardprop
