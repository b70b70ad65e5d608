#include "io/json_numbers.h"

#include "io/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace shardprop::io {

bool JsonNumberReader::fail(std::string message, std::string help) {
  if (failed_) return false;
  message_ = std::move(message);
  help_ = std::move(help);
  failed_ = true;
  return false;
}

bool JsonNumberReader::fail_at(const char* what) {
  return failed_ ? false : fail(fmt::format("{} is expected here", what));
}

Error JsonNumberReader::error() const {
  // JsonReader tracks the path of its position, so it skips the same text to
  // find the path.
  const std::string_view read(begin_, static_cast<std::size_t>(at_ - begin_));
  StringArena arena;
  JsonReader reader(read, arena);
  reader.skip();
  Error error{ErrorCode::kContestSyntax, message_, "$", {}, help_};
  if (reader.error()) error.location = reader.error()->location;
  error.notes.push_back(
      fmt::format("at byte {}, line {}", read.size(),
                  1 + std::count(read.begin(), read.end(), '\n')));
  return error;
}

bool JsonNumberReader::next_member(bool& first, std::string& key) {
  skip_space();
  if (failed_) return false;
  if (at_ != end_ && *at_ == '}') {
    ++at_;
    return false;
  }
  if (!first && !expect(',', "a comma or closing brace")) return false;
  first = false;
  return read_string(key) && expect(':', "a colon");
}

bool JsonNumberReader::next_element(bool& first) {
  skip_space();
  if (failed_) return false;
  if (at_ != end_ && *at_ == ']') {
    ++at_;
    return false;
  }
  if (!first && !expect(',', "a comma or closing bracket")) return false;
  first = false;
  return true;
}

bool JsonNumberReader::read_integer(std::int64_t& value) {
  skip_space();
  const char* const start = at_;
  bool negative = false;
  if (at_ != end_ && *at_ == '-') {
    negative = true;
    ++at_;
  }
  std::uint64_t magnitude = 0;
  const char* const digits = at_;
  while (at_ != end_ && static_cast<unsigned char>(*at_ - '0') < 10) {
    magnitude = magnitude * 10 + static_cast<unsigned>(*at_ - '0');
    ++at_;
  }
  if (failed_) return false;
  const bool plain = at_ == end_ || (*at_ != '.' && *at_ != 'e' && *at_ != 'E');
  const auto count = at_ - digits;
  if (!plain || count == 0 || (count > 1 && *digits == '0')) {
    return read_rare(start, value);
  }
  // 10^18 has 19 digits; every number of at most 18 digits fits in 64 bits.
  if (count > 18) {
    const auto read = std::from_chars(start, at_, value);
    return read.ec == std::errc() || read_rare(start, value);
  }
  value = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  return true;
}

// Reads the rare spellings, 1e18 and 3.0, and reports errors.
bool JsonNumberReader::read_rare(const char* start, std::int64_t& value) {
  at_ = start;
  const std::string_view rest(start, static_cast<std::size_t>(end_ - start));
  const std::string_view token =
      rest.substr(0, rest.find_first_not_of("+-.0123456789eE"));
  if (token.empty()) return fail_at("an integer");
  StringArena arena;
  JsonReader reader(token, arena);
  const auto number = reader.integer_or_number();
  reader.end();
  if (reader.error()) return fail(reader.error()->message);
  if (const auto* whole = std::get_if<std::int64_t>(&number)) {
    value = *whole;
  } else {
    const double real = std::get<double>(number);
    constexpr double kTop = 9223372036854775808.0;
    if (real != std::floor(real) || real >= kTop || real < -kTop) {
      return fail(fmt::format("`{}` is not an integer that fits in 64 bits",
                              token.substr(0, 40)));
    }
    value = static_cast<std::int64_t>(real);
  }
  at_ = start + token.size();
  return true;
}

bool JsonNumberReader::read_string(std::string& value) {
  skip_space();
  if (failed_ || at_ == end_ || *at_ != '"') return fail_at("a string");
  const char* close = at_ + 1;
  while (close != end_ && *close != '"') {
    close += *close == '\\' && close + 1 != end_ ? 2 : 1;
  }
  if (close == end_) {
    at_ = end_;
    return fail_at("the end of a string");
  }
  StringArena arena;
  JsonReader reader({at_, static_cast<std::size_t>(close + 1 - at_)}, arena);
  const std::string_view text = reader.string();
  if (reader.error()) return fail(reader.error()->message);
  value = text;
  at_ = close + 1;
  return true;
}

bool JsonNumberReader::at_end() {
  skip_space();
  return (!failed_ && at_ == end_) || fail_at("the end of the file");
}

}  // namespace shardprop::io
