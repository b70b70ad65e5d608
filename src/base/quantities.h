// Formats times, bytes and counts for people; microseconds() is the unit of
// times in machine-readable output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {

std::string time_text(std::int64_t nanoseconds);  // "12.3 us", "1.25 ms"
std::string bytes_text(std::int64_t bytes);       // "512 B", "16.0 MiB"
std::string count_text(std::int64_t count);       // "7,415"
// Returns "1 mesh dim", "2 mesh dims" for a noun whose plural adds an s.
std::string counted(std::int64_t count, std::string_view noun);
std::string counted(std::size_t count, std::string_view noun);

double microseconds(std::int64_t nanoseconds);
std::optional<double> microseconds(std::optional<std::int64_t> nanoseconds);

}  // namespace shardprop
