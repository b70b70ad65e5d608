// Times and bytes in the unit a person would say them in, and times in the
// unit in which they leave as numbers.
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
// "1 mesh dim", "2 mesh dims": of a noun whose plural takes an s.
std::string counted(std::int64_t count, std::string_view noun);
std::string counted(std::size_t count, std::string_view noun);

double microseconds(std::int64_t nanoseconds);
std::optional<double> microseconds(std::optional<std::int64_t> nanoseconds);

}  // namespace shardprop
