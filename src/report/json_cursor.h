// `JsonCursor` is a place in a JSON document that a reader checks while it
// reads. The first problem is kept with its path, and every later read returns
// an empty value. A reader is therefore straight-line code that checks once, at
// the end:
//
//   JsonCursor::Reading reading;
//   const JsonCursor root(json, reading);
//   const std::int64_t size = root["sizes"].elements()[0].integer();
//   root.refuse_unread();
//   if (reading.problem) ...   // at .sizes[0]
#pragma once

#include "io/linear_json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace shardprop {

class JsonCursor {
 public:
  struct Problem {
    std::string path;
    std::string message;
  };

  struct Reading {
    std::optional<Problem> problem;
    std::unordered_set<const void*> seen;  // members that were asked for
  };

  // `reading` must outlive the cursor and all cursors below it.
  JsonCursor(const LinearJson& at, Reading& reading)
      : at_(&at), reading_(&reading) {}

  // Returns a member of an object; a missing member is a problem.
  JsonCursor operator[](std::string_view key) const;
  bool has(std::string_view key) const;
  bool is_null() const { return at_->is_null(); }
  bool is_list() const { return at_->is_array(); }
  bool is_boolean() const { return at_->is_boolean(); }
  bool is_integer() const { return at_->is_number_integer(); }
  bool is_number() const { return at_->is_number(); }
  const LinearJson& json() const { return *at_; }
  const std::string& path() const { return path_; }

  // Return the elements of a list, or the names and members of an object.
  std::vector<JsonCursor> elements() const;
  std::vector<std::pair<std::string, JsonCursor>> members() const;

  std::string text() const;
  std::vector<std::string> texts() const;
  std::int64_t integer(std::int64_t least = 0,
                       std::int64_t most = INT64_MAX) const;
  // Reads a list in one pass, because it may have millions of entries.
  std::vector<std::int64_t> integers() const;
  bool boolean() const;
  double number() const;
  // Reads finite microseconds of at least 0, and returns nanoseconds.
  std::int64_t nanoseconds() const;
  // Reads a difference of two times, which may be negative.
  std::int64_t nanoseconds_more() const;

  void fail(std::string message) const;
  // Reports a member below that was not read as an unknown key.
  void refuse_unread() const;

 private:
  JsonCursor(const LinearJson* at, std::string path, Reading* reading)
      : at_(at), path_(std::move(path)), reading_(reading) {}
  static const LinearJson& nothing();
  std::int64_t nanoseconds_between(double least, const char* expected) const;

  const LinearJson* at_;
  std::string path_;
  Reading* reading_;
};

}  // namespace shardprop
