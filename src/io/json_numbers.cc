#include "io/json_numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace shardprop::io {

bool JsonNumberReader::fail_at(const char* what) {
  if (!failed_) expected_ = what;
  failed_ = true;
  return false;
}

Error JsonNumberReader::error() const {
  return {ErrorCode::kContestSyntax,
          fmt::format("{} is expected here", expected_),
          fmt::format("byte {}", at_ - begin_),
          {},
          {}};
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
  if (at_ == digits || failed_) return fail_at("an integer");
  const bool real = at_ != end_ && (*at_ == '.' || *at_ == 'e' || *at_ == 'E');
  if (real || at_ - digits > 18) return read_real(start, value);
  value = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  return true;
}

// The rare spellings: 1e18, 3.0, and integers of 19 digits or more.
bool JsonNumberReader::read_real(const char* start, std::int64_t& value) {
  const auto exact = std::from_chars(start, end_, value);
  const bool ends_here =
      exact.ptr == end_ ||
      (*exact.ptr != '.' && *exact.ptr != 'e' && *exact.ptr != 'E');
  if (exact.ec == std::errc{} && ends_here) {
    at_ = exact.ptr;
    return true;
  }
  double real = 0;
  const auto parsed = std::from_chars(start, end_, real);
  if (parsed.ec == std::errc::invalid_argument) return fail_at("an integer");
  at_ = parsed.ptr;
  if (parsed.ec == std::errc::result_out_of_range) {
    real = *start == '-' ? -HUGE_VAL : HUGE_VAL;
  }
  if (std::isfinite(real) && real != std::floor(real)) {
    return fail_at("an integer");
  }
  constexpr double kTop = 9223372036854775808.0;
  value = real >= kTop    ? std::numeric_limits<std::int64_t>::max()
          : real <= -kTop ? std::numeric_limits<std::int64_t>::min()
                          : static_cast<std::int64_t>(real);
  return true;
}

bool JsonNumberReader::read_string(std::string& value) {
  if (!expect('"', "a string")) return false;
  value.clear();
  while (at_ != end_ && *at_ != '"') {
    if (*at_ == '\\') {
      // Names are the only strings here: an escape is kept as it is written,
      // which also is what the writer needs.
      value.push_back(*at_++);
      if (at_ == end_) break;
    }
    value.push_back(*at_++);
  }
  return expect('"', "the end of a string");
}

bool JsonNumberReader::skip_scalar() {
  const char* const start = at_;
  while (at_ != end_ && *at_ != ',' && *at_ != ']' && *at_ != '}' &&
         *at_ != ' ' && *at_ != '\n' && *at_ != '\t' && *at_ != '\r') {
    ++at_;
  }
  return at_ != start || fail_at("a value");
}

bool JsonNumberReader::skip_value() {
  // An explicit stack: nesting in a hostile file must not exhaust ours.
  std::string open;
  std::string ignored;
  do {
    skip_space();
    if (failed_ || at_ == end_) return fail_at("a value");
    if (*at_ == '{' || *at_ == '[') {
      open.push_back(*at_++);
    } else if (*at_ == '"') {
      if (!read_string(ignored)) return false;
    } else if (*at_ == '}' || *at_ == ']') {
      if (open.empty() || (*at_ == '}') != (open.back() == '{')) {
        return fail_at("a value");
      }
      open.pop_back();
      ++at_;
    } else if (!open.empty() && (*at_ == ',' || *at_ == ':')) {
      ++at_;
    } else if (!skip_scalar()) {
      return false;
    }
  } while (!open.empty());
  return true;
}

bool JsonNumberReader::at_end() {
  skip_space();
  return (!failed_ && at_ == end_) || fail_at("the end of the file");
}

}  // namespace shardprop::io
