#include <doctest/doctest.h>

#include "io/json_reader.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

std::optional<Error> skim(std::string_view text) {
  StringArena arena;
  JsonReader json(text, arena);
  json.skip();
  json.end();
  return json.error();
}

std::string text_of(std::string_view text) {
  StringArena arena;
  JsonReader json(text, arena);
  const std::string value(json.string());
  CHECK(json.ok());
  return value;
}

double number_of(std::string_view text) {
  StringArena arena;
  JsonReader json(text, arena);
  const double value = json.number();
  CHECK(json.ok());
  return value;
}

}  // namespace

TEST_CASE("well-formed texts are accepted") {
  for (const char* text :
       {"null", "true", " false ", "0", "-0", "12.5e-3", "1E+9", "NaN",
        "-Infinity", "\"\"", "[]", "{}", "[1, [2], {\"a\": null}]",
        "{\"a\": {\"b\": []}, \"c\": \"\\u00e9\\n\"}", "\"\xc3\xa9\""}) {
    CAPTURE(text);
    CHECK_FALSE(skim(text));
  }
}

TEST_CASE("what is no JSON is an error at its place") {
  for (const char* text : {"",
                           " ",
                           "nul",
                           "tru",
                           "+1",
                           "01",
                           "1.",
                           ".5",
                           "1e",
                           "-",
                           "[1,]",
                           "[1",
                           "[1 2]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{\"a\":1",
                           "\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\n\"",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf5\x80\x80\x80\"",
                           "1 2",
                           "]",
                           "[}",
                           "{]"}) {
    CAPTURE(text);
    const auto error = skim(text);
    REQUIRE(error);
    CHECK(error->code == ErrorCode::kJsonSyntax);
  }
}

TEST_CASE("strings are unescaped") {
  CHECK(text_of(R"("a\"\\\/\b\f\n\r\tz")") == "a\"\\/\b\f\n\r\tz");
  CHECK(text_of(R"("\u0041\u00e9\u20ac\ud83d\ude00")") ==
        "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(text_of("\"\xe2\x82\xac\"") == "\xe2\x82\xac");
}

// Strings are read eight bytes at a time: every byte that needs a look, at every
// place among them, behind plain ones and one that follows it.
TEST_CASE("what is special in a string is seen wherever it stands") {
  const std::string letters = "abcdefghijklmnopqrstuvwxyz";
  for (std::size_t before = 0; before < 20; ++before) {
    CAPTURE(before);
    const std::string head = letters.substr(0, before);
    for (const std::string tail : {"", "z", "zyxwvutsrqponm"}) {
      for (int byte = 0; byte < 0x80; ++byte) {
        CAPTURE(byte);
        const char c = static_cast<char>(byte);
        std::string text = head;
        text += c;
        text += tail;
        const bool is_control = byte < 0x20;
        if (c == '"' || c == '\\' || is_control) {
          CHECK(skim('"' + text + '"').has_value());
        } else {
          CHECK(text_of('"' + text + '"') == text);
        }
        if (c != '"' && c != '\\') continue;
        std::string escaped = head;
        escaped += '\\';
        escaped += c;
        CHECK(text_of('"' + escaped + tail + '"') == text);
        // The escape appears twice in a row, after unescaped characters.
        CHECK(text_of('"' + escaped + escaped + tail + '"') ==
              head + c + head + c + tail);
      }
      for (const std::string wide :
           {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
        CHECK(text_of('"' + head + wide + tail + '"') == head + wide + tail);
        CHECK(text_of("\"\\n" + head + wide + tail + '"') ==
              '\n' + head + wide + tail);
        CHECK(skim('"' + head + wide.substr(0, 1) + tail + '"').has_value());
      }
    }
  }
}

TEST_CASE("a key is doubled only within its own object") {
  const auto read = [](std::string_view text) {
    StringArena arena;
    JsonReader json(text, arena);
    std::string keys;
    const auto object = [&](auto& self) -> void {
      json.object([&](std::string_view key) {
        keys += key;
        if (json.peek() == JsonReader::Kind::kObject) {
          self(self);
        } else {
          json.skip();
        }
      });
    };
    object(object);
    json.end();
    return json.ok() ? keys : "error";
  };
  CHECK(read(R"({"a": {"a": {"b": 1}, "b": {}}, "b": {"a": 1}})") == "aabbba");
  CHECK(read(R"({"a": {"a": 1, "b": 2}, "c": 1, "a": 3})") == "error");
  CHECK(read(R"({"c": {"a": 1, "b": {"d": 1}, "a": 2}})") == "error");
}

TEST_CASE("numbers keep their value") {
  CHECK(number_of("-12.5e1") == -125.0);
  CHECK(number_of("\"Infinity\"") == std::numeric_limits<double>::infinity());
  CHECK(number_of("-Infinity") == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(number_of("\"NaN\"")));
  CHECK(std::isinf(number_of("1e999")));
  CHECK(number_of("1e-999") == 0.0);
  StringArena arena;
  JsonReader json("[9223372036854775807, 9223372036854775808]", arena);
  std::vector<std::int64_t> read;
  json.array([&] { read.push_back(json.integer()); });
  CHECK(read.front() == std::numeric_limits<std::int64_t>::max());
  REQUIRE(json.error());
  CHECK(json.error()->code == ErrorCode::kFieldType);
  CHECK(json.error()->location == "$[1]");
}

TEST_CASE("the first error sticks, and says where") {
  StringArena arena;
  JsonReader json(R"({"a": {"b c": [1, "two", 3]}, "d": 4})", arena);
  int visited = 0;
  json.object([&](std::string_view) {
    ++visited;
    json.object([&](std::string_view) { json.array([&] { json.integer(); }); });
  });
  CHECK(visited == 1);
  REQUIRE(json.error());
  CHECK(json.error()->location == "$.a['b c'][1]");
  CHECK(json.error()->message == "an integer is expected here, not a string");
}

TEST_CASE("nesting and doubled keys have their own codes") {
  const std::string deep(100000, '[');
  CHECK(skim(deep)->code == ErrorCode::kTooDeep);
  StringArena arena;
  JsonReader json(R"({"a": 1, "a": 2})", arena);
  json.object([&](std::string_view) { json.skip(); });
  REQUIRE(json.error());
  CHECK(json.error()->code == ErrorCode::kRepeatedKey);
}
