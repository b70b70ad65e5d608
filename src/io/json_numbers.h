// `JsonNumberReader` is a pull reader for JSON files that contain almost only
// integers.
//
// The contest's files contain tens of millions of small integers. A general
// parser spends most of its time on values that are discarded later.
#pragma once

#include <shardprop/base/result.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardprop::io {

// Reads one value after another. After the first failure every call fails;
// error() reports the path and the expected value.
class JsonNumberReader {
 public:
  explicit JsonNumberReader(std::string_view text)
      : begin_(text.data()), at_(text.data()), end_(at_ + text.size()) {}

  bool open_object() { return expect('{', "an object"); }
  bool open_array() { return expect('[', "a list"); }
  // Returns true if there is another member, whose key is then in `key`.
  // Returns false after the closing brace or a failure. The caller's loop keeps
  // `first`.
  bool next_member(bool& first, std::string& key);
  // The same function for elements of a list.
  bool next_element(bool& first);
  // Reads an integer in any spelling of JSON, such as 12, 3.0 or 1e18, of at
  // most 64 bits.
  bool read_integer(std::int64_t& value);
  bool read_string(std::string& value);
  // True if only white space remains.
  bool at_end();

  // Reports that the last value read is wrong. Returns false.
  bool fail(std::string message, std::string help = {});
  bool failed() const { return failed_; }
  // The error has the path of the value, such as $.problem.nodes.costs[3][0].
  Error error() const;

 private:
  void skip_space() {
    while (at_ != end_ &&
           (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) {
      ++at_;
    }
  }
  bool expect(char wanted, const char* what) {
    skip_space();
    if (failed_ || at_ == end_ || *at_ != wanted) return fail_at(what);
    ++at_;
    return true;
  }
  bool fail_at(const char* what);
  bool read_rare(const char* start, std::int64_t& value);

  const char* begin_;
  const char* at_;
  const char* end_;
  bool failed_ = false;
  std::string message_;
  std::string help_;
};

}  // namespace shardprop::io
