// `JsonReader` reads a JSON text from front to back, value by value, without a
// tree. A tree of small values takes ten to twenty times the memory of its
// text.
//
// Errors are sticky: after the first error every read returns a neutral value
// and every loop ends. A decoder therefore has the structure of its data. The
// caller checks error() once, at the end.
//
//   JsonReader json(R"({"sizes": [8, 16]})");
//   json.object([&](std::string_view key) {
//     if (key == "sizes") json.array([&] { sizes.push_back(json.integer()); });
//     else json.skip();
//   });
//   json.end();
//   if (json.error()) ...   // at $.sizes[1]
//
// Strict RFC 8259 and UTF-8, except that NaN, Infinity and -Infinity are
// numbers, as Python writes them.
#pragma once

#include <shardprop/base/error.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardprop {

// Owns strings that had escapes; views of them stay valid as long as the arena.
class StringArena {
 public:
  std::string_view store(std::string_view text);

 private:
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t used_ = 0;
  std::size_t capacity_ = 0;
};

class JsonReader {
 public:
  enum class Kind : std::uint8_t {
    kNull,
    kBool,
    kNumber,
    kString,
    kArray,
    kObject,
    kNothing,  // the end, an error, or no JSON
  };

  // The text and the arena must outlive the strings that are read.
  JsonReader(std::string_view text, StringArena& arena)
      : text_(text), arena_(arena) {}

  Kind peek();
  bool null();  // takes a null if there is one
  bool boolean();
  std::int64_t integer();
  // Reads a number; it is an integer if it is written as one.
  std::variant<std::int64_t, double> integer_or_number();
  double number();  // also takes "Infinity", "-Infinity" and "NaN" as strings
  std::string_view string();
  void skip();
  void end();  // nothing may follow

  // Calls on_key(key) before each value, which on_key must read or skip. A
  // repeated key is an error.
  template <class OnKey>
  void object(OnKey on_key) {
    const std::size_t first = keys_.size();
    members([&](std::string_view key) {
      if (!first_time(first, key)) return;
      on_key(key);
    });
    keys_.resize(first);
  }
  // Reads an object with a key per entry of a table. The caller checks for
  // repeated keys.
  template <class OnKey>
  void members(OnKey on_key) {
    if (!open('{')) return;
    for (bool first = true; next_element('}', first); first = false) {
      path_.push_back({take_key(), 0});
      if (ok()) on_key(path_.back().key);
      path_.pop_back();
    }
    close();
  }
  // Calls on_element() before each value, which on_element must read or skip.
  template <class OnElement>
  void array(OnElement on_element) {
    if (!open('[')) return;
    path_.push_back({});
    for (bool first = true; next_element(']', first); first = false) {
      on_element();
      ++path_.back().index;
    }
    path_.pop_back();
    close();
  }
  bool ok() const { return !error_; }
  const std::optional<Error>& error() const { return error_; }
  // Fails at the current place; only the first failure counts.
  void fail(ErrorCode code, std::string message, std::string help = {});
  void expected(std::string_view what);
  // "$.graph_module.graph.nodes[12]"
  std::string path() const;

 private:
  struct Segment {
    std::string_view key;  // of an object's member; of an array: no data
    std::size_t index = 0;
  };

  void skip_blanks();
  bool open(char bracket);
  void close() { --depth_; }
  bool next_element(char closing, bool first);
  std::string_view take_key();
  // True if the key differs from all keys from `first` on.
  bool first_time(std::size_t first, std::string_view key);
  bool literal(std::string_view word);
  bool literal(char c);
  std::string_view number_token();
  std::string_view quoted();
  std::string_view unescape(std::size_t start);
  std::size_t end_of_plain(std::size_t at) const;
  bool escape(std::string& out);
  std::optional<std::uint32_t> hex4();
  void syntax(std::string message);

  std::string_view text_;
  StringArena& arena_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<Segment> path_;
  // The keys so far of all open objects, the outermost first.
  std::vector<std::string_view> keys_;
  std::string unescaped_;
  std::optional<Error> error_;
};

}  // namespace shardprop
