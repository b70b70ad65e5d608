#include "report/json_cursor.h"

#include <cmath>
#include <utility>

namespace shardprop {
namespace {

// About 30 years, far below the range of nanoseconds in 64 bits.
constexpr double kMostMicroseconds = 1e15;

}  // namespace

const LinearJson& JsonCursor::nothing() {
  static const LinearJson kNull;
  return kNull;
}

void JsonCursor::fail(std::string message) const {
  if (!reading_->problem) reading_->problem = {path_, std::move(message)};
}

bool JsonCursor::has(std::string_view key) const {
  return at_->is_object() && at_->contains(key);
}

// The depth of recursion is that of the text that was read, which is bounded.
// NOLINTNEXTLINE(misc-no-recursion)
void JsonCursor::refuse_unread() const {
  if (reading_->problem || !at_->is_structured()) return;
  if (at_->is_array()) {
    for (const JsonCursor& element : elements()) element.refuse_unread();
    return;
  }
  for (const auto& [key, value] : at_->items()) {
    if (!reading_->seen.contains(&value)) {
      constexpr std::size_t kMostShown = 80;
      return fail("unknown key `" + key.substr(0, kMostShown) + "`");
    }
    JsonCursor(&value, path_ + "." + key, reading_).refuse_unread();
  }
}

JsonCursor JsonCursor::operator[](std::string_view key) const {
  std::string path = path_ + "." + std::string(key);
  if (!at_->is_object()) {
    fail("expected an object");
  } else if (const auto found = at_->find(key); found != at_->end()) {
    reading_->seen.insert(&*found);
    return {&*found, std::move(path), reading_};
  } else {
    fail("`" + std::string(key) + "` is missing");
  }
  return {&nothing(), std::move(path), reading_};
}

std::vector<JsonCursor> JsonCursor::elements() const {
  std::vector<JsonCursor> out;
  if (!at_->is_array()) {
    fail("expected a list");
    return out;
  }
  for (std::size_t i = 0; i < at_->size(); ++i) {
    out.push_back(JsonCursor(&(*at_)[i], path_ + "[" + std::to_string(i) + "]",
                             reading_));
  }
  return out;
}

std::vector<std::pair<std::string, JsonCursor>> JsonCursor::members() const {
  std::vector<std::pair<std::string, JsonCursor>> out;
  if (!at_->is_object()) {
    fail("expected an object");
    return out;
  }
  for (const auto& [key, value] : at_->items()) {
    reading_->seen.insert(&value);
    out.emplace_back(key, JsonCursor(&value, path_ + "." + key, reading_));
  }
  return out;
}

std::string JsonCursor::text() const {
  if (at_->is_string()) return at_->get<std::string>();
  fail("expected a string");
  return {};
}

std::vector<std::string> JsonCursor::texts() const {
  std::vector<std::string> out;
  for (const JsonCursor& element : elements()) out.push_back(element.text());
  return out;
}

std::int64_t JsonCursor::integer(std::int64_t least, std::int64_t most) const {
  if (!at_->is_number_integer()) {
    fail("expected an integer");
    return least;
  }
  const auto value = at_->get<std::int64_t>();
  if (value >= least && value <= most) return value;
  fail(std::to_string(value) + " is out of range");
  return least;
}

std::vector<std::int64_t> JsonCursor::integers() const {
  std::vector<std::int64_t> out;
  if (!at_->is_array()) {
    fail("expected a list");
    return out;
  }
  out.reserve(at_->size());
  for (const LinearJson& element : *at_) {
    if (!element.is_number_integer()) {
      JsonCursor(&element, path_ + "[" + std::to_string(out.size()) + "]",
                 reading_)
          .fail("expected an integer");
      return out;
    }
    out.push_back(element.get<std::int64_t>());
  }
  return out;
}

bool JsonCursor::boolean() const {
  if (at_->is_boolean()) return at_->get<bool>();
  fail("expected true or false");
  return false;
}

double JsonCursor::number() const {
  if (at_->is_number() && std::isfinite(at_->get<double>())) {
    return at_->get<double>();
  }
  fail("expected a number");
  return 0;
}

std::int64_t JsonCursor::nanoseconds() const {
  return nanoseconds_between(0, "expected a time in microseconds");
}

std::int64_t JsonCursor::nanoseconds_more() const {
  return nanoseconds_between(-kMostMicroseconds,
                             "expected a difference in microseconds");
}

std::int64_t JsonCursor::nanoseconds_between(double least,
                                             const char* expected) const {
  const double us = number();
  if (us >= least && us < kMostMicroseconds) return std::llround(us * 1000);
  fail(expected);
  return 0;
}

}  // namespace shardprop
